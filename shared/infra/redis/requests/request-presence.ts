import { seqAt } from '../../../domain/requests/acceptance-order.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { TimeLimit } from '../timing.ts';

/**
 * `open`: it has not ended; `ended`: it has; `failed`: with an error; `bodiless`: it is accepted, but Redis has lost its body;
 * `missing`: Redis does not know it.
 */
type Presence = 'open' | 'ended' | 'failed' | 'bodiless' | 'missing';

/** Tells which requests Redis still has, so that the others can be recovered. */
export interface RequestPresence {
  look(shard: number, requestIds: readonly string[]): Promise<Presence[]>;
  /**
   * Gives a request that was admitted again the time of its first acceptance, which its caller knows, and its place in the
   * order of then: turns are stored in that order, and a deletion takes what was accepted before it. One that does not wait
   * in Redis stays as it is. Safe to repeat.
   */
  setAcceptedAt(shard: number, requestId: string, acceptedAt: number): Promise<void>;
}

export function createRequestPresence(client: RedisClient, keyspace: Keyspace, limit: TimeLimit): RequestPresence {
  const setAcceptance = defineScript(client, 'accepted-at');

  async function lookAt(shard: number, requestId: string): Promise<Presence> {
    const keys = keyspace.shard(shard);
    const [values, body] = await Promise.all([
      client.hmget(keys.record(requestId), 'state', 'status'),
      client.exists(keys.body(requestId)),
    ]);
    const [state = null, status] = values;
    if (state === null) return (await client.exists(keys.ended(requestId))) === 1 ? 'ended' : 'missing';
    if (state !== 'accepted' && state !== 'running') return status === 'failed' ? 'failed' : 'ended';
    return state === 'accepted' && body === 0 ? 'bodiless' : 'open';
  }

  return {
    look: (shard, requestIds) => limit(Promise.all(requestIds.map((requestId) => lookAt(shard, requestId)))),
    async setAcceptedAt(shard, requestId, acceptedAt) {
      const record = keyspace.shard(shard).record(requestId);
      await limit(setAcceptance([record], [acceptedAt, seqAt(acceptedAt)]));
    },
  };
}
