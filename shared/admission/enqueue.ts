import { setTimeout as delay } from 'node:timers/promises';

import { LOST } from '../contracts/events.ts';
import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import type { Principal } from '../domain/keys/principal.ts';
import { ServiceError } from '../errors/service-error.ts';
import type { Logger } from '../infra/logging/logger.ts';
import type { AdmissionStore } from '../infra/redis/requests/admission-store.ts';
import type { RecentWrites } from '../infra/redis/recent-writes.ts';
import type { LineStore } from '../infra/redis/requests/line-store.ts';
import { inTime } from '../infra/redis/timing.ts';
import type { Clock } from '../lifecycle/clock.ts';

export interface EnqueueDeps {
  line: Pick<LineStore, 'enqueue'>;
  store: Pick<AdmissionStore, 'voidTold' | 'disown'>;
  clock: Clock;
  log: Logger;
  /** After this long an admission is left to the sweep. */
  giveUpAfterMs: number;
  /** Absent: what was taken back may run if Redis comes back without that. */
  recentWrites?: Pick<RecentWrites, 'note'>;
  /** For a request that was charged although its caller was told 503. */
  refund?: (requestId: string, principal: Principal) => Promise<void>;
}

export interface Enqueue {
  /**
   * Puts a request into line that was admitted without its body. Throws `model_unavailable`, but only once the admission has
   * been taken back.
   */
  enqueue(envelope: RequestEnvelope, principal: Principal): Promise<void>;
  /**
   * Takes an admission back in the background, trying until Redis confirms it. `isRefused`: Redis said that it did nothing,
   * so no tombstone is needed against what could still be under way.
   */
  takeBack(requestId: string, principal: Principal, isRefused?: boolean): void;
}

const RETRY_MS = 250;
/** States that an admission was found in and does not have any longer, as void.lua names them. */
const TAKEN_BACK: ReadonlySet<string | undefined> = new Set(['accepted', 'missing', 'stopped']);

export function createEnqueue(deps: EnqueueDeps): Enqueue {
  const { line, store, clock, log, giveUpAfterMs, recentWrites, refund } = deps;

  /** Its caller was told 503. Redis may come back with the request, which a worker may have, and without this. */
  function noteTaken(state: string | undefined, requestId: string, principal: Principal): void {
    if (!TAKEN_BACK.has(state)) return;
    const { shard, tenantId } = principal;
    recentWrites?.note(
      async () => {
        // It came back, ended and was charged: nobody can read its answer, or knows of it.
        if ((await store.disown(requestId, principal, LOST)) === 'gone') void refund?.(requestId, principal);
      },
      { shard, requestId, tenantId },
    );
  }

  /** Returns the state in which the record was found. Undefined: Redis did not answer in time. */
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
        // The outcome is unknown: the job may exist. If a worker has it already, it goes on and its answer is relayed.
        const state = await untilConfirmed(() => store.voidTold(requestId, principal, LOST), requestId);
        if (state === 'running' || state === 'done') return;
        noteTaken(state, requestId, principal);
        log.warn('A request could not be enqueued and was taken back.', { requestId, error: cause });
        throw new ServiceError('model_unavailable', 'The queue does not answer at the moment; try again shortly.', {
          cause,
          retryAfterSeconds: 1,
        });
      }
    },

    takeBack(requestId, principal, isRefused = false) {
      // LOST is for a call that has joined the request under its Idempotency-Key.
      void untilConfirmed(() => store.disown(requestId, principal, LOST, isRefused), requestId).then((state) => {
        if (!isRefused) noteTaken(state, requestId, principal);
        return state === 'gone' ? refund?.(requestId, principal) : undefined;
      });
    },
  };
}
