import { openRecovery } from '../../shared/admission/open-recovery.ts';
import type { OpenRecoveryDeps, Recovery } from '../../shared/admission/open-recovery.ts';
import { createAnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import { createRequestIntents } from '../../shared/infra/mongo/requests/request-intents.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/stored-answers.ts';
import { inTime } from '../../shared/infra/redis/timing.ts';
import { createKeepIntent } from './keep-intent.ts';
import type { KeepIntent } from './keep-intent.ts';
import { createRecall } from './recall.ts';
import type { Recall } from './recall.ts';

export interface OpenRecallDeps extends Omit<OpenRecoveryDeps, 'limit'> {
  retentionMs: number;
}

/** Puts together what MongoDB keeps of requests beside Redis, and what brings it back. */
export function openRecall(deps: OpenRecallDeps): { recall: Recall; keepIntent: KeepIntent; recovery: Recovery } {
  const { mongo, redis, keyspace, retentionMs, clock, log } = deps;
  const intents = createRequestIntents(mongo);
  const recovery = openRecovery({ ...deps, limit: inTime });
  const recall = createRecall({
    ...{ intents, recover: recovery.recover, retentionMs, clock, log },
    answers: createAnswerRepository(mongo),
    cache: createAnswerCache(redis, keyspace),
  });
  return { recall, keepIntent: createKeepIntent({ intents, clock, log }), recovery };
}
