import type { RequestEnvelope } from '../contracts/jobs.ts';
import { STORED_ANSWER_MS } from '../contracts/stored-answer.ts';
import type { EndedAnswer, StoredAnswer } from '../contracts/stored-answer.ts';
import { parseEnvelope, UnreadableError } from '../contracts/stored-request.ts';
import { endOf, outageOf } from '../domain/requests/outage.ts';
import type { AnswerRepository } from '../infra/mongo/requests/answer-repository.ts';
import type { FailedIntents } from '../infra/mongo/requests/failed-intents.ts';
import type { RequestIntent, RequestIntents } from '../infra/mongo/requests/request-intents.ts';
import type { AnswerCache } from '../infra/redis/requests/answer-cache.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface ConcludeIntentDeps {
  intents: Pick<RequestIntents, 'forgetRun'>;
  failed: Pick<FailedIntents, 'keepFailed'>;
  /** `store` passes the erasure gate. */
  answers: Pick<AnswerRepository, 'find' | 'store'>;
  cache: Pick<AnswerCache, 'read'>;
  clock: Clock;
}

export type ConcludeIntent = (intent: RequestIntent) => Promise<void>;

/**
 * An ended request as MongoDB stores it. Undefined: Redis alone keeps its answer. Like finish.lua: a request that ended
 * without an answer frees its key, so that a retry runs.
 */
export function toStoredAnswer(
  ended: EndedAnswer,
  { mode, kept, acceptedAt, request }: RequestEnvelope,
  hasText: boolean,
): StoredAnswer | undefined {
  if (kept === undefined || kept.redisOnly === true) return undefined;
  const { idempotency, storedMs } = kept;
  const isRemembered = ended.fields['status'] === 'completed' || hasText;
  return {
    ...ended,
    mode,
    ...(request.entityId === undefined ? {} : { entityId: request.entityId }),
    ...(idempotency !== undefined && isRemembered ? { idempotency } : {}),
    expiresAt: storedMs === undefined ? acceptedAt + STORED_ANSWER_MS : Number(ended.fields['finishedAt']) + storedMs,
  };
}

/**
 * Concludes the intent of a request that has ended: MongoDB gets the answer if it lacks it, as its worker may have died or
 * been cut off, and the intent is deleted. If the request failed in an outage, the intent is kept for as long as the
 * answer, and an operator may run the request again. If that happens meanwhile, the intent of the new run stays. Safe to
 * repeat.
 */
export function createConcludeIntent({ intents, failed, answers, cache, clock }: ConcludeIntentDeps): ConcludeIntent {
  async function storeIfMissing(ended: EndedAnswer, stored: StoredAnswer | undefined, envelope: RequestEnvelope) {
    if (stored?.fields['finishedAt'] === ended.fields['finishedAt']) return;
    const answer = toStoredAnswer(ended, envelope, endOf(ended).hasText);
    if (answer !== undefined && answer.expiresAt > clock.now()) await answers.store(answer);
  }

  async function concludeReadable(intent: RequestIntent, envelope: RequestEnvelope): Promise<void> {
    const { requestId, tenantId, shard } = intent;
    const [cached, stored] = await Promise.all([
      cache.read(shard, requestId),
      answers.find({ tenantId, mode: 'any' }, requestId, clock.now()),
    ]);
    if (cached !== undefined) await storeIfMissing(cached, stored, envelope);
    const ended = cached ?? stored;
    const code = ended === undefined ? undefined : outageOf(endOf(ended));
    if (ended === undefined || code === undefined) return intents.forgetRun(intent);
    const at = Number(ended.fields['finishedAt']);
    const ownMs = envelope.kept?.redisOnly === true ? envelope.retentionMs : envelope.kept?.storedMs;
    await failed.keepFailed(intent, { at, code, ...(ownMs === undefined ? {} : { keptUntil: at + ownMs }) });
  }

  return async (intent) => {
    try {
      await concludeReadable(intent, parseEnvelope(intent.envelopeJson));
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      await intents.forgetRun(intent);
    }
  };
}
