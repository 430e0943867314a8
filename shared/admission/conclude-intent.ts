import { parseEnvelope, UnreadableError } from '../contracts/stored-request.ts';
import { endOf, outageOf } from '../domain/requests/outage.ts';
import type { AnswerRepository } from '../infra/mongo/requests/answer-repository.ts';
import type { FailedIntents } from '../infra/mongo/requests/failed-intents.ts';
import type { RequestIntent, RequestIntents } from '../infra/mongo/requests/request-intents.ts';
import type { AnswerCache } from '../infra/redis/requests/stored-answers.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface ConcludeIntentDeps {
  intents: Pick<RequestIntents, 'forgetRun'>;
  failed: Pick<FailedIntents, 'keepFailed'>;
  answers: Pick<AnswerRepository, 'find'>;
  cache: Pick<AnswerCache, 'read'>;
  clock: Clock;
}

export type ConcludeIntent = (intent: RequestIntent) => Promise<void>;

/** How long the answers of a tenant stay that keeps them for less than a day; undefined: a day. */
function ownRetentionMs({ envelopeJson }: RequestIntent): number | undefined {
  const { kept, retentionMs } = parseEnvelope(envelopeJson);
  return kept?.redisOnly === true ? retentionMs : kept?.storedMs;
}

/**
 * What becomes of the intent of a request that has ended: it is forgotten, unless the request failed in an outage. Then it
 * may be run again for as long as its answer would have been kept. Somebody may have it run again meanwhile: what was seen
 * of its end holds for the run of this intent only. Safe to repeat.
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
