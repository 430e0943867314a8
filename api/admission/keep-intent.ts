import { setTimeout as pause } from 'node:timers/promises';

import type { ConcludeIntent } from '../../shared/admission/conclude-intent.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Space } from '../../shared/contracts/space.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { RequestIntents } from '../../shared/infra/mongo/requests/request-intents.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface IntentKeeperDeps {
  intents: Pick<RequestIntents, 'keep' | 'find'>;
  conclude: ConcludeIntent;
  clock: Clock;
  log: Logger;
}

/** Keeps accepted requests in MongoDB until they end, in case Redis comes back without its last second. */
export interface IntentKeeper {
  /** To be called before the caller gets 202. Throws `model_unavailable` if the request cannot be kept. */
  storeBeforeAnswer(shard: number, envelope: RequestEnvelope): Promise<void>;
  /**
   * To be called before 202 for a request that another call made: waits until that call has stored it, because until
   * then it may void the request. `isOver`: whether the request has ended and its answer is kept.
   */
  waitUntilStored(space: Space, requestId: string, isOver: () => Promise<boolean>): Promise<void>;
  /** For a caller that waits for the answer. Nothing waits for the write, so it delays no first token. */
  storeInBackground(shard: number, envelope: RequestEnvelope): void;
  /** To be called when the request was cancelled: MongoDB has its end from then on, and recovery does not run it again. */
  conclude(space: Space, requestId: string): void;
}

/** How long the other call may take to store it. */
const OTHER_MS = 1_500;
const OTHER_POLL_MS = 50;

function noPromise(cause: unknown): ServiceError {
  return new ServiceError(
    'model_unavailable',
    'The service cannot promise to keep the request at the moment; try again shortly.',
    { cause, retryAfterSeconds: 1 },
  );
}

export function createIntentKeeper({ intents, conclude, clock, log }: IntentKeeperDeps): IntentKeeper {
  const keep = (shard: number, envelope: RequestEnvelope) => intents.keep(shard, envelope, clock.now());

  return {
    async storeBeforeAnswer(shard, envelope) {
      try {
        await keep(shard, envelope);
      } catch (cause) {
        throw noPromise(cause);
      }
    },

    async waitUntilStored(space, requestId, isOver) {
      const until = clock.now() + OTHER_MS;
      try {
        while ((await intents.find(space, requestId, clock.now())) === undefined && !(await isOver())) {
          if (clock.now() > until) throw new Error('The request is not kept beside Redis');
          await pause(OTHER_POLL_MS);
        }
      } catch (cause) {
        throw noPromise(cause);
      }
    },

    storeInBackground(shard, envelope) {
      keep(shard, envelope).catch((error: unknown) => {
        log.warn('A request under an Idempotency-Key is not kept beside Redis.', {
          requestId: envelope.requestId,
          error,
        });
      });
    },

    conclude(space, requestId) {
      const concluding = intents.find(space, requestId, clock.now()).then((intent) => intent && conclude(intent));
      // If this fails, the next recovery round concludes the intent.
      concluding.catch((error: unknown) => {
        log.warn('The intent of a request that was cancelled could not be concluded.', { requestId, error });
      });
    },
  };
}
