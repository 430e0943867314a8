import { openRecovery } from '../../shared/admission/open-recovery.ts';
import type { OpenRecoveryDeps, Recovery } from '../../shared/admission/open-recovery.ts';
import type { RecoverRequest } from '../../shared/admission/recover-request.ts';
import { namedUntil } from '../../shared/contracts/stored-answer.ts';
import type { StoredAnswer } from '../../shared/contracts/stored-answer.ts';
import type { Space } from '../../shared/contracts/space.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { createAnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../shared/infra/mongo/requests/answer-repository.ts';
import { createRequestIntents } from '../../shared/infra/mongo/requests/request-intents.ts';
import type { RequestIntent, RequestIntents } from '../../shared/infra/mongo/requests/request-intents.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/answer-cache.ts';
import type { AnswerCache } from '../../shared/infra/redis/requests/answer-cache.ts';
import { inTime } from '../../shared/infra/redis/timing.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { createIntentKeeper } from './keep-intent.ts';
import type { IntentKeeper } from './keep-intent.ts';

/**
 * Brings back to Redis what MongoDB keeps and Redis has expired or lost: answers, and requests that have not ended. So
 * readers need to read only from Redis.
 */
export interface Recall {
  /** True: the request is in Redis again. */
  byId(principal: Pick<Principal, 'tenantId' | 'mode' | 'shard'>, requestId: string): Promise<boolean>;
  /** Called before admission: a request must not run again just because Redis has forgotten its Idempotency-Key. */
  byName(principal: Pick<Principal, 'tenantId' | 'mode' | 'shard'>, name: string): Promise<void>;
}

interface RecallDeps {
  answers: Pick<AnswerRepository, 'find' | 'findNamed'>;
  cache: Pick<AnswerCache, 'isNamed' | 'restore'>;
  intents: Pick<RequestIntents, 'find' | 'findNamed'>;
  recover: RecoverRequest;
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

function createRecall({ answers, cache, intents, recover, retentionMs, clock, log }: RecallDeps): Recall {
  /** If MongoDB is unavailable, what Redis knows has to do. */
  async function orNothing<Kept>(look: Promise<Kept | undefined>): Promise<Kept | undefined> {
    return look.catch((error: unknown) => {
      log.warn('Stored answers and requests cannot be read.', { error });
      return undefined;
    });
  }

  async function restore(shard: number, answer: StoredAnswer, now: number): Promise<void> {
    const keptMs = Math.max(1, answer.expiresAt - now);
    const namedMs = Math.min(keptMs, namedUntil(answer) - now);
    await cache.restore(shard, answer, { ttlMs: Math.min(retentionMs, keptMs), namedMs });
  }

  /** Until a lost request is back, no other request may run under its Idempotency-Key. */
  async function bringBack(intent: RequestIntent): Promise<'open' | 'ended'> {
    const recovery = await recover(intent);
    if (recovery.kind !== 'later') return recovery.kind;
    throw new ServiceError('model_unavailable', 'The request is being brought back; try again shortly.', {
      retryAfterSeconds: toRetrySeconds(recovery.waitMs),
    });
  }

  async function restoreById(space: Space, shard: number, requestId: string): Promise<boolean> {
    const now = clock.now();
    const answer = await orNothing(answers.find(space, requestId, now));
    if (answer !== undefined) await restore(shard, answer, now);
    return answer !== undefined;
  }

  return {
    async byId(principal, requestId) {
      const { shard } = principal;
      if (await restoreById(principal, shard, requestId)) return true;
      const intent = await orNothing(intents.find(principal, requestId, clock.now()));
      if (intent === undefined) return false;
      return (await bringBack(intent)) === 'open' || restoreById(principal, shard, requestId);
    },

    async byName(principal, name) {
      const { shard } = principal;
      if (await cache.isNamed(shard, name)) return;
      const now = clock.now();
      const [answer, intent] = await Promise.all([
        orNothing(answers.findNamed(principal, name, now)),
        orNothing(intents.findNamed(principal, name, now)),
      ]);
      if (answer !== undefined) {
        await restore(shard, answer, now);
      } else if (intent !== undefined && (await bringBack(intent)) === 'ended') {
        // The answer was stored after the look-up above.
        await restoreById(principal, shard, intent.requestId);
      }
    },
  };
}

interface OpenRecallDeps extends Omit<OpenRecoveryDeps, 'limit'> {
  retentionMs: number;
}

/** Composes the parts that keep requests in MongoDB, and those that bring them back. */
export function openRecall(deps: OpenRecallDeps): { recall: Recall; intentKeeper: IntentKeeper; recovery: Recovery } {
  const { mongo, redis, keyspace, retentionMs, clock, log } = deps;
  const intents = createRequestIntents(mongo);
  const recovery = openRecovery({ ...deps, limit: inTime });
  const recall = createRecall({
    intents,
    recover: recovery.recover,
    retentionMs,
    clock,
    log,
    answers: createAnswerRepository(mongo),
    cache: createAnswerCache(redis, keyspace),
  });
  return { recall, intentKeeper: createIntentKeeper({ intents, conclude: recovery.conclude, clock, log }), recovery };
}
