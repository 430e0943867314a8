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
  answers: Pick<AnswerRepository, 'find'>;
  cache: Pick<AnswerCache, 'read'>;
  clock: Clock;
}

export type ConcludeIntent = (intent: RequestIntent) => Promise<void>;

/** How long the tenant keeps answers; milliseconds. Undefined: a day. */
function ownRetentionMs({ envelopeJson }: RequestIntent): number | undefined {
  const { kept, retentionMs } = parseEnvelope(envelopeJson);
  return kept?.redisOnly === true ? retentionMs : kept?.storedMs;
}

/**
 * Deletes the intent of a request that has ended, unless the request failed in an outage: then the intent is kept for as
 * long as the answer would have been, and an operator may run the request again. If that happens meanwhile, the intent of
 * the new run stays. Safe to repeat.
 */
export function createConcludeIntent({ intents, failed, answers, cache, clock }: ConcludeIntentDeps): ConcludeIntent {
  return async (intent) => {
    const { requestId, tenantId, shard } = intent;
    const ended =
      (await cache.read(shard, requestId)) ?? (await answers.find({ tenantId, mode: 'any' }, requestId, clock.now()));
    const code = ended === undefined ? undefined : outageOf(endOf(ended));
    if (ended === undefined || code === undefined) return intents.forgetRun(intent);
    const at = Number(ended.fields['finishedAt']);
    try {
      const ownMs = ownRetentionMs(intent);
      await failed.keepFailed(intent, { at, code, ...(ownMs === undefined ? {} : { keptUntil: at + ownMs }) });
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      await intents.forgetRun(intent);
    }
  };
}
