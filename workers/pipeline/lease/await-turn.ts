import { setTimeout as pause } from 'node:timers/promises';

import type { RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import type { Delivery } from '../stage.ts';

export interface AwaitTurnDeps {
  requests: Pick<RequestStore, 'leaseLeftMs'>;
  /** Whether Redis has just come back, so that a lease which ran out meanwhile says nothing of its worker. */
  hasReconnectedRecently: (withinMs?: number) => boolean;
}

/** Resolves when a delivery may claim its request. */
export type AwaitTurn = (delivery: Delivery) => Promise<void>;

const POLL_MS = 250;
/** By then every worker has said what it runs and what it has ended, which Redis may have come back without. */
const SAID_AGAIN_MS = 1_500;

/**
 * BullMQ hands a job out again when its lock has run out; its worker may live all the same, cut off from Redis for a
 * while. As long as that worker renews the request's lease, a later delivery waits instead of taking the request from
 * it, which would end a stream that has begun. Only politeness: the fence decides.
 */
export function createAwaitTurn({ requests, hasReconnectedRecently }: AwaitTurnDeps): AwaitTurn {
  return async ({ shard, requestId, attempt }) => {
    if (attempt === 1) {
      while (hasReconnectedRecently(SAID_AGAIN_MS)) await pause(POLL_MS);
      return;
    }
    while (hasReconnectedRecently() || (await requests.leaseLeftMs(shard, requestId)) > 0) await pause(POLL_MS);
  };
}
