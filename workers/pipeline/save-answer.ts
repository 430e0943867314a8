import { setTimeout as pause } from 'node:timers/promises';

import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { mergeAnswer } from '../../shared/contracts/events.ts';
import type { FinishReason, MergedAnswer } from '../../shared/contracts/events.ts';
import type { EndedAnswer } from '../../shared/contracts/request-envelope.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ConversationRepository } from '../../shared/mongo/entities/conversation-repository.ts';
import { isMongoUnreachable } from '../../shared/mongo/faults.ts';
import type { AnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';
import type { AnswerCache } from '../../shared/requests/answers.ts';
import { toStoredAnswer } from '../../shared/requests/recovery.ts';
import { isEmpty } from './stage.ts';
import type { Claimed, Generated, Stage, ReleasedAnswer } from './stage.ts';

export interface SaveTurnDeps {
  conversations: ConversationRepository;
  clock: Clock;
  log: Logger;
}

/** Longer than a replica set takes to choose another primary. */
const AWAY_MS = 20_000;
const RETRY_MS = 500;

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'length', 'tool_calls']);

/**
 * An answer as an entity remembers it. One that calls tools is none: whoever sends their results sends the calls as well
 * (docs/spec.md#history). Undefined: the turn is not stored, as nothing was said or the model refused.
 */
function rememberedOf(answer: ReleasedAnswer): ChatMessage[] | undefined {
  if (isEmpty(answer)) return undefined;
  const message: MergedAnswer['message'] =
    answer.lines === undefined ? { content: answer.text } : mergeAnswer(answer.lines).message;
  if ((message['tool_calls'] ?? message['function_call']) !== undefined) return [];
  return message.content === null ? undefined : [{ role: 'assistant', content: message.content }];
}

/**
 * Stores the turn before the terminal event, so that the caller's next request finds it. Only whole answers are stored
 * (docs/spec.md#history).
 */
export function createSaveTurn({ conversations, clock, log }: SaveTurnDeps): Stage<Generated, Generated> {
  /** Retries while MongoDB is unavailable: saved after the answer's end, the turn could miss the next prompt. */
  async function retryWhileMongoIsAway(store: () => Promise<void>, { signal }: Claimed['lease']): Promise<void> {
    const until = clock.now() + AWAY_MS;
    for (;;) {
      try {
        await store();
        return;
      } catch (error) {
        if (!isMongoUnreachable(error) || signal.aborted || clock.now() > until) throw error;
        await pause(RETRY_MS);
      }
    }
  }

  return async (run) => {
    const { envelope, entity, outcome, answer, seq, claimedAt } = run;
    const { entityId } = envelope.request;
    // With no retention, a tenant's turns are not saved either.
    if (envelope.retentionMs === 0) return run;
    if (entityId === undefined || entity === undefined || !WHOLE.has(outcome.finishReason)) return run;
    const said = rememberedOf(answer);
    if (said === undefined) return run;
    const messages = [...entity.unseen, ...said];
    if (messages.length === 0) return run;
    const turn = { requestId: envelope.requestId, seq, claimedAt, messages };
    answer.isTurnSaved = true;
    try {
      const { rowId } = entity;
      const options = { create: rowId === undefined, now: clock.now(), rowId };
      await retryWhileMongoIsAway(() => conversations.saveTurn(envelope, entityId, turn, options), run.lease);
    } catch (error) {
      // The answer exists and is charged, so the caller gets it; the log tells the operator that the turn is missing.
      log.error('A turn could not be stored in its entity.', {
        requestId: envelope.requestId,
        tenantId: envelope.tenantId,
        error,
      });
    }
    return run;
  };
}

export interface StoreAnswerDeps {
  answers: Pick<AnswerRepository, 'store'>;
  cache: AnswerCache;
  /** Redis keeps an answer that MongoDB has this long. */
  retentionMs: number;
  log: Logger;
}

/** If Redis came back without the end of the request, its end has been replayed by the last try. */
const TRIES_MAX = 5;
const STORE_AGAIN_MS = 500;

interface EndedRequest {
  delivery: Pick<Claimed['delivery'], 'shard' | 'requestId'>;
  envelope: Claimed['envelope'];
  answer: ReleasedAnswer;
}

/**
 * Stores the answer of an ended request in MongoDB if it must be kept longer than Redis keeps answers: for a day if the
 * call was asynchronous or had an Idempotency-Key, or for the tenant's retention. If MongoDB does not take it, Redis
 * keeps it for that long, and recovery stores it later if the request has an intent. Safe to run twice.
 */
export function createStoreAnswer({ answers, cache, retentionMs, log }: StoreAnswerDeps) {
  async function readEnd({ shard, requestId }: EndedRequest['delivery']): Promise<EndedAnswer | undefined> {
    for (let tries = 1; ; tries += 1) {
      const ended = await cache.read(shard, requestId);
      if (ended !== undefined || tries === TRIES_MAX) return ended;
      await pause(STORE_AGAIN_MS);
    }
  }

  return async ({ delivery, envelope, answer }: EndedRequest): Promise<void> => {
    const { shard, requestId } = delivery;
    const { kept } = envelope;
    if (kept === undefined || kept.redisOnly === true) return;
    try {
      const ended = await readEnd(delivery);
      if (ended === undefined) return;
      const stored = toStoredAnswer(ended, envelope, !isEmpty(answer));
      if (stored === undefined) return;
      await answers.store(stored);
      await cache.shorten(shard, ended, retentionMs);
    } catch (error) {
      log.warn('An answer could not be stored in MongoDB; Redis keeps it instead.', { requestId, error });
    }
  };
}
