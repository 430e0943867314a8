import { namedUntil } from '../../shared/contracts/jobs.ts';
import type { RequestEnvelope, StoredAnswer } from '../../shared/contracts/jobs.ts';
import type { Space } from '../../shared/contracts/space.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import { pollUntil } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import { createAnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';
import type { AnswerRepository } from '../../shared/mongo/requests/answer-repository.ts';
import { createRequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import type { RequestIntent, RequestIntents } from '../../shared/mongo/requests/request-intents.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import { createAnswerCache } from '../../shared/requests/answers.ts';
import type { AnswerCache } from '../../shared/requests/answers.ts';
import { openRecovery } from '../../shared/requests/recovery.ts';
import type { ConcludeIntent, RecoverRequest, RecoveryParts } from '../../shared/requests/recovery.ts';

interface IntentStoreDeps {
  intents: RequestIntents;
  conclude: ConcludeIntent;
  clock: Clock;
  log: Logger;
}

/** Keeps accepted requests in MongoDB until they end, in case Redis comes back without its last second. */
export type IntentStore = ReturnType<typeof createIntentStore>;

/** The other call may take this long to store it. */
const OTHER_MS = 1_500;

function noPromise(cause: unknown): ServiceError {
  return new ServiceError(
    'model_unavailable',
    'The service cannot promise to keep the request at the moment; try again shortly.',
    { cause, retryAfterSeconds: 1 },
  );
}

function createIntentStore({ intents, conclude, clock, log }: IntentStoreDeps) {
  const keep = (shard: number, envelope: RequestEnvelope) => intents.keep(shard, envelope, clock.now());

  return {
    /** To be called before the caller gets 202. Throws `model_unavailable` if the request cannot be kept. */
    async storeBeforeAnswer(shard: number, envelope: RequestEnvelope): Promise<void> {
      try {
        await keep(shard, envelope);
      } catch (cause) {
        throw noPromise(cause);
      }
    },

    /**
     * To be called before 202 for a request that another call made: waits until that call has stored it, because until
     * then it may void the request. `isOver`: whether the request has ended and its answer is kept.
     */
    async waitUntilStored(space: Space, requestId: string, isOver: () => Promise<boolean>): Promise<void> {
      const isKept = async () => (await intents.find(space, requestId, clock.now())) !== undefined || (await isOver());
      try {
        if (!(await pollUntil(clock, OTHER_MS, isKept, Boolean)))
          throw new Error('The request is not kept beside Redis');
      } catch (cause) {
        throw noPromise(cause);
      }
    },

    /** For a caller that waits for the answer. Nothing waits for the write, so it delays no first token. */
    storeInBackground(shard: number, envelope: RequestEnvelope): void {
      keep(shard, envelope).catch((error: unknown) => {
        log.warn('A request under an Idempotency-Key is not kept beside Redis.', {
          requestId: envelope.requestId,
          error,
        });
      });
    },

    /** To be called when the request was cancelled: MongoDB has its end from then on, and recovery does not run it again. */
    conclude(space: Space, requestId: string): void {
      const concluding = intents.find(space, requestId, clock.now()).then((intent) => intent && conclude(intent));
      // If this fails, the next recovery round concludes the intent.
      concluding.catch((error: unknown) => {
        log.warn('The intent of a request that was cancelled could not be concluded.', { requestId, error });
      });
    },
  };
}

/** Brings back to Redis what only MongoDB still has, answers and open requests; so readers read only from Redis. */
export type RestoreFromMongo = ReturnType<typeof createRestoreFromMongo>;

interface RestoreFromMongoDeps {
  answers: AnswerRepository;
  cache: AnswerCache;
  intents: RequestIntents;
  recover: RecoverRequest;
  retentionMs: number;
  clock: Clock;
  log: Logger;
}

function createRestoreFromMongo({ answers, cache, intents, recover, retentionMs, clock, log }: RestoreFromMongoDeps) {
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
    /** True: the request is in Redis again. */
    async byId(principal: Principal, requestId: string): Promise<boolean> {
      const { shard } = principal;
      if (await restoreById(principal, shard, requestId)) return true;
      const intent = await orNothing(intents.find(principal, requestId, clock.now()));
      if (intent === undefined) return false;
      return (await bringBack(intent)) === 'open' || restoreById(principal, shard, requestId);
    },

    /** Called before admission: a request must not run again just because Redis has forgotten its Idempotency-Key. */
    async byName(principal: Principal, name: string): Promise<void> {
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

export function openDurableRequests(parts: RecoveryParts) {
  const { mongo, redis, keyspace } = parts;
  const intents = createRequestIntents(mongo);
  const recovery = openRecovery(parts, inTime);
  const restoreFromMongo = createRestoreFromMongo({
    ...parts,
    intents,
    recover: recovery.recover,
    answers: createAnswerRepository(mongo),
    cache: createAnswerCache(redis, keyspace),
  });
  const intentStore = createIntentStore({ ...parts, intents, conclude: recovery.conclude });
  return { restoreFromMongo, intentStore, recovery };
}
