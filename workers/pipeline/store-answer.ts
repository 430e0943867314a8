import { setTimeout as pause } from 'node:timers/promises';

import { STORED_ANSWER_MS } from '../../shared/contracts/stored-answer.ts';
import type { EndedAnswer } from '../../shared/contracts/stored-answer.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/answer-cache.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Claimed } from './stage.ts';

export interface StoreAnswerDeps {
  answers: Pick<AnswerRepository, 'store'>;
  cache: Pick<AnswerCache, 'read' | 'shorten'>;
  /** How long Redis keeps an answer that MongoDB has. */
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

/** If Redis came back without the end of the request, the finish journal has replayed it by the last try. */
const TRIES_MAX = 5;
const AGAIN_MS = 500;

type EndedRequest = Pick<Claimed, 'ref' | 'envelope'> & { answer: Pick<Claimed['answer'], 'text'> };

/**
 * Stores the answer of an ended request in MongoDB if it must be kept longer than Redis keeps answers: for a day if the
 * call was asynchronous or had an Idempotency-Key, or for the tenant's retention. If MongoDB does not take it, Redis
 * keeps it for that long. Safe to run twice.
 */
export function createStoreAnswer({ answers, cache, retentionMs, clock, log }: StoreAnswerDeps) {
  async function readEnd({ shard, requestId }: EndedRequest['ref']): Promise<EndedAnswer | undefined> {
    for (let tries = 1; ; tries += 1) {
      const ended = await cache.read(shard, requestId);
      if (ended !== undefined || tries === TRIES_MAX) return ended;
      await pause(AGAIN_MS);
    }
  }

  return async ({ ref, envelope, answer }: EndedRequest): Promise<void> => {
    const { shard, requestId } = ref;
    const { kept, acceptedAt, request } = envelope;
    if (kept === undefined || kept.redisOnly === true) return;
    try {
      const ended = await readEnd(ref);
      if (ended === undefined) return;
      // Like finish.lua: a request that ended without an answer frees its key, so that a retry runs.
      const isRemembered = ended.fields['status'] === 'completed' || answer.text !== '';
      await answers.store({
        ...ended,
        mode: envelope.mode,
        ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
        ...(kept.idempotency !== undefined && isRemembered ? { idempotency: kept.idempotency } : {}),
        expiresAt: kept.storedMs === undefined ? acceptedAt + STORED_ANSWER_MS : clock.now() + kept.storedMs,
      });
      await cache.shorten(shard, ended, retentionMs);
    } catch (error) {
      log.warn('An answer could not be stored in MongoDB; Redis keeps it instead.', { requestId, error });
    }
  };
}
