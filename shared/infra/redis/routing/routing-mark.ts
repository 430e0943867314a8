import { randomUUID } from 'node:crypto';

import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { inTime } from '../timing.ts';

/** Says whether tiers or providers have changed, so that processes need not reread all of them from MongoDB. */
export interface RoutingMark {
  /**
   * A text that differs from every earlier one once routes have changed; '' before their first change. Rejects if Redis
   * does not answer within 200 ms. While an earlier call is unanswered, further calls reject at once.
   */
  read(): Promise<string>;
  /**
   * To be called once MongoDB has a change; safe to repeat. Rejects if Redis refuses or does not answer within 500 ms; the
   * mark may be set nevertheless.
   */
  renew(): Promise<void>;
}

/** Half a second passes between two looks, and a change has a second (docs/spec.md#administration). */
const READ_MS = 200;
/** An administrator waits. Processes that get no answer from Redis either will read MongoDB. */
const RENEW_MS = 500;

export function createRoutingMark(client: RedisClient, keyspace: Keyspace): RoutingMark {
  const { mark } = keyspace.routing;
  const markRoutes = defineScript(client, 'mark-routes');
  let isAsking = false;

  return {
    async read() {
      // A worker's client queues its commands while Redis is unavailable.
      if (isAsking) throw new Error('Redis has not answered an earlier call');
      isAsking = true;
      const answer = client.get(mark).finally(() => (isAsking = false));
      return (await inTime(answer, READ_MS)) ?? '';
    },

    async renew() {
      // Random, not counted: a Redis that comes back without its last second would use a number twice.
      await inTime(markRoutes([mark], [randomUUID()]), RENEW_MS);
    },
  };
}
