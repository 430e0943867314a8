import { setTimeout as delay } from 'node:timers/promises';

import { LOST } from '../contracts/events.ts';
import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import type { Principal } from '../domain/keys/principal.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type { AdmissionStore } from '../infra/redis/requests/admission-store.ts';
import type { LineStore } from '../infra/redis/requests/line-store.ts';
import { inTime } from '../infra/redis/timing.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface EnqueueDeps {
  line: Pick<LineStore, 'enqueue'>;
  store: Pick<AdmissionStore, 'void' | 'disown'>;
  clock: Clock;
  log: Logger;
  /** After this long an admission is left to the sweep. */
  giveUpAfterMs: number;
  /** For a request whose caller was told that it was not accepted, and that was charged all the same. */
  refund?: (requestId: string, principal: Principal) => Promise<void>;
}

export interface Enqueue {
  /**
   * Puts a request into line whose body did not come with its admission. Throws `model_unavailable` only once the admission
   * is surely taken back.
   */
  enqueue(envelope: RequestEnvelope, principal: Principal): Promise<void>;
  /**
   * Takes an admission back in the background, trying until Redis confirms it. `isRefused`: Redis has said that it did
   * nothing, so no tombstone has to stop what could still be under way.
   */
  takeBack(requestId: string, principal: Principal, isRefused?: boolean): void;
}

const RETRY_MS = 250;

export function createEnqueue({ line, store, clock, log, giveUpAfterMs, refund }: EnqueueDeps): Enqueue {
  /** The state found when the record was last seen; undefined: Redis did not answer in all that time. */
  async function untilConfirmed(takeBack: () => Promise<string>, requestId: string): Promise<string | undefined> {
    const until = clock.now() + giveUpAfterMs;
    while (clock.now() < until) {
      try {
        return await takeBack();
      } catch {
        await delay(RETRY_MS);
      }
    }
    log.error('An admission could not be taken back in time; the sweep will end it.', { requestId });
    return undefined;
  }

  return {
    async enqueue(envelope, principal) {
      const { requestId, tenantId, endpoint } = envelope;
      try {
        const body = JSON.stringify(envelope);
        const state = await inTime(line.enqueue(principal.shard, queueOf(endpoint), { requestId, tenantId, body }));
        if (state === 'void' || state === 'missing') throw new Error(`The request is ${state}`);
      } catch (cause) {
        // Unknown, not failed: the job may be there. Where a worker already has it, it runs on and is relayed.
        const state = await untilConfirmed(() => store.void(requestId, principal, LOST), requestId);
        if (state === 'running' || state === 'done') return;
        log.warn('A request could not be enqueued and was taken back.', { requestId, error: cause });
        throw new ServiceError('model_unavailable', 'The queue does not answer at the moment; try again shortly.', {
          cause,
          retryAfterSeconds: 1,
        });
      }
    },

    takeBack(requestId, principal, isRefused = false) {
      // Another call may have joined the request under its Idempotency-Key: it hears that nobody answers.
      void untilConfirmed(() => store.disown(requestId, principal, LOST, isRefused), requestId).then((state) =>
        state === 'gone' ? refund?.(requestId, principal) : undefined,
      );
    },
  };
}
