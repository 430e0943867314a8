import { setTimeout as pause } from 'node:timers/promises';

import type { FinishedNotice } from '../../shared/contracts/finished-notice.ts';
import { kindsOf, mergeAnswer } from '../../shared/contracts/events.ts';
import type { Usage, FinishReason, MergedAnswer } from '../../shared/contracts/events.ts';
import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import type { EndedAnswer } from '../../shared/contracts/jobs.ts';
import { priceUsage, vectorTokens } from '../../shared/domain/pricing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ConversationRepository } from '../../shared/mongo/entities/conversation-repository.ts';
import { statusOf } from '../../shared/requests/delivery.ts';
import type { AnswerCache } from '../../shared/requests/answers.ts';
import { toStoredAnswer } from '../../shared/requests/recovery.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WorkerEmitter } from './worker-events.ts';
import { askedUsage, spendOn, unpaidPrompt } from './spending.ts';
import { isEmpty } from './stage.ts';
import type { Claimed, Outcome, UnbilledReason, Generated, Stage, ReleasedAnswer } from './stage.ts';
import { isMongoUnreachable } from '../../shared/mongo/faults.ts';
import type { AnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';

interface SaveTurnDeps {
  conversations: ConversationRepository;
  clock: Clock;
  log: Logger;
}

/** Longer than a replica set takes to choose another primary. */
const AWAY_MS = 20_000;
const RETRY_MS = 500;

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'length', 'tool_calls']);

/**
 * Writes an answer as an entity remembers it. One that calls tools is none: the caller sends the calls with their
 * results (docs/spec.md#history). Undefined: nothing was said or the model refused, so the turn is not stored.
 */
function rememberedOf(answer: ReleasedAnswer): ChatMessage[] | undefined {
  if (isEmpty(answer)) return undefined;
  const message: MergedAnswer['message'] =
    answer.lines === undefined ? { content: answer.text } : mergeAnswer(answer.lines).message;
  if ((message['tool_calls'] ?? message['function_call']) !== undefined) return [];
  return message.content === null ? undefined : [{ role: 'assistant', content: message.content }];
}

/** Stores a whole answer's turn (docs/spec.md#history) before the terminal event: the next request finds it. */
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

interface StoreAnswerDeps {
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
 * Stores an ended request's answer in MongoDB if it must be kept longer than Redis keeps answers: for a day if the call
 * was asynchronous or had an Idempotency-Key, or for the tenant's retention. If MongoDB does not take it, Redis keeps
 * it as long, and recovery stores it later if the request has an intent. Safe to run twice.
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

export interface FinishDeps {
  conversations: Pick<ConversationRepository, 'deleteTurn'>;
  clock: Clock;
  events: WorkerEmitter;
  log: Logger;
}

function factsOf({ envelope }: Claimed) {
  const { requestId, tenantId, keyId, mode, tier, endpoint, request } = envelope;
  const entity = request.entityId === undefined ? {} : { entityId: request.entityId };
  return { requestId, tenantId, keyId, mode, tier, endpoint, ...entity };
}

/**
 * Shown text is paid for, and so is an answer without any whose tokens the provider has counted, because it reasoned.
 * Failures and cancels without text, and answers of which moderation let nothing through, cost nothing
 * (docs/spec.md#ledger).
 */
function isBilled({ answer }: Claimed, { usage }: Outcome): boolean {
  return !isEmpty(answer) || usage.completionTokens > 0;
}

/** `used`: all tokens, charged or not. A test key's charge is zero, but its ledger entry is still written. */
function settlementOf(run: Claimed, outcome: Outcome, used: Usage, finishedAt: number): SettlementRecord | undefined {
  const { envelope, answer, rates } = run;
  const { usage, finishReason } = outcome;
  if (!isBilled(run, outcome)) return undefined;
  const spend = spendOn(answer.asks, used);
  return {
    ...factsOf(run),
    acceptedAt: envelope.acceptedAt,
    finishedAt,
    finishReason,
    provider: answer.provider,
    model: answer.model,
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    ...kindsOf(usage),
    estimated: usage.estimated ?? false,
    costMicro: envelope.mode === 'test' ? 0 : priceUsage(usage, rates),
    ...(spend === undefined ? {} : { spend }),
  };
}

/** Tells webhooks, besides the booking, of a failure, or that moderation flagged the request. */
function noticeOf(
  run: Claimed,
  { usage, finishReason, error }: Outcome,
  finishedAt: number,
): FinishedNotice | undefined {
  const { verdict = 'passed', categories = [] } = run.answer.trace.moderation ?? {};
  const isFlagged = verdict === 'flagged_input' || verdict === 'flagged_output';
  if (finishReason !== 'error' && !isFlagged) return undefined;
  const side = verdict === 'flagged_input' ? 'input' : 'output';
  return {
    ...factsOf(run),
    seq: run.seq,
    finishReason,
    usage,
    finishedAt,
    errorCode: error?.code ?? null,
    ...(isFlagged ? { flagged: { side, categories } } : {}),
  };
}

function unbilledReason({ answer }: Claimed, { finishReason }: Outcome): UnbilledReason {
  if (finishReason === 'cancelled') return 'cancelled';
  if (finishReason === 'content_filter') return 'flagged';
  return answer.rejected ?? 'failed';
}

const totalOf = ({ promptTokens, completionTokens }: Usage) => promptTokens + completionTokens;

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0);

/**
 * Counts tokens that providers were asked for and nobody pays for: all calls of a request that is not charged, else
 * those before its last, the repair in its last, and `over`, which the tenant's bounds did not cover. Refused calls are
 * no work; where there were no others, the prompt keeps its weight all the same.
 */
function unbilledOf(run: Claimed, outcome: Outcome, over: number): Outcome['unbilled'] {
  const { asked, asks, promptTokens, rejected = 'failed' } = run.answer;
  const isPaid = isBilled(run, outcome);
  const unpaid = (isPaid ? asks.slice(0, -1) : asks).filter(({ isRefused }) => !isRefused);
  const repaired = isPaid ? asks.slice(-1).map(unpaidPrompt) : [];
  const calls = sumOf([...unpaid.map((ask) => totalOf(askedUsage(ask))), ...repaired]);
  const kept = calls === 0 && !isPaid && asked !== undefined ? promptTokens : calls;
  if (kept + over === 0) return undefined;
  const tokens = {
    ...(kept > 0 ? { [isPaid ? rejected : unbilledReason(run, outcome)]: kept } : {}),
    ...(over > 0 ? { over_grant: over } : {}),
  };
  return { tokens, worked: calls + over };
}

/** Tokens that vectors count in the token window beyond those of their inputs. */
function vectorsBeyond(run: Claimed, outcome: Outcome): number {
  if (run.envelope.request.task?.kind !== 'embedding' || !isBilled(run, outcome)) return 0;
  return Math.max(0, vectorTokens(run.answer.asks.at(-1)?.heard.units ?? 0) - totalOf(outcome.usage));
}

async function asCharged(run: Claimed, outcome: Outcome): Promise<Outcome> {
  const usage = isBilled(run, outcome) ? await run.lease.payable(outcome.usage) : outcome.usage;
  const over = totalOf(outcome.usage) - totalOf(usage);
  const charged = { ...outcome, usage };
  const unbilled = unbilledOf(run, charged, over);
  return unbilled === undefined ? charged : { ...charged, unbilled };
}

/**
 * Ends the request: terminal event, settlement record, hold release and job in one script. Safe to run twice: the
 * script refuses a lower fence and a second end, so a job that comes again ends and charges once. False: refused. An
 * end that is refused, or that nobody pays for, leaves no turn in its entity.
 */
export function createFinish({ conversations, clock, events, log }: FinishDeps) {
  /** Undefined: this run has saved no turn. Keeps little of the run, as ends are remembered for a while. */
  function deletionOfTurn({ envelope, answer, claimedAt }: Claimed): (() => Promise<void>) | undefined {
    const { tenantId, mode, requestId, request } = envelope;
    const { entityId } = request;
    if (entityId === undefined || answer.isTurnSaved !== true) return undefined;
    return async () => {
      try {
        await conversations.deleteTurn({ tenantId, mode }, entityId, { requestId, claimedAt });
      } catch (error) {
        log.error('A turn could not be taken out of its entity.', { requestId, tenantId, error });
      }
    };
  }

  return async (run: Claimed, ended: Outcome): Promise<boolean> => {
    const { answer, envelope, delivery } = run;
    const outcome = await asCharged(run, ended);
    const now = clock.now();
    const settlement = settlementOf(run, outcome, ended.usage, now);
    const notice = noticeOf(run, outcome, now);
    const { finishReason, usage, error, unbilled } = outcome;
    const deleteTurn = deletionOfTurn(run);
    if (settlement !== undefined) outcome.charge = settlement;
    const finished = await delivery.finish({
      status: statusOf(finishReason),
      deltas: answer.unsent,
      terminal: { finishReason, usage, trace: answer.trace, ...(error === undefined ? {} : { error }) },
      costMicro: settlement?.costMicro ?? 0,
      retentionMs: envelope.retentionMs,
      ...(settlement === undefined ? {} : { settlement }),
      ...(notice === undefined ? {} : { notice }),
      endsJob: run.job?.endsWith(run, outcome) ?? false,
      ...(deleteTurn === undefined ? {} : { whenUnbilled: () => void deleteTurn() }),
      unbilledTokens: sumOf(Object.values(unbilled?.tokens ?? {})) + vectorsBeyond(run, outcome),
      unpaidTokens: unbilled?.worked ?? 0,
    });
    if (finished) events.emit('request.finished', run, outcome);
    else {
      const { requestId, fence } = delivery;
      log.info('A finish was refused: another delivery owns the request or it has ended.', { requestId, fence });
      await deleteTurn?.();
    }
    return finished;
  };
}
