import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Keeps out addresses that guess tokens, and sessions that were ended. */
export type AdminAccessStore = ReturnType<typeof createAdminAccessStore>;

export function createAdminAccessStore(
  client: RedisClient,
  keyspace: Keyspace,
  { failuresPerMinute }: { failuresPerMinute: number },
) {
  const count = defineScript(client, 'count-address');
  const { failures, endedSession } = keyspace.administration;
  return {
    /** Counts a failed token of an address. Undefined: it may try again; else the milliseconds until it may. */
    async countFailure(requestId: string, address: string): Promise<number | undefined> {
      const reply = await count([failures(address)], [requestId, failuresPerMinute]);
      if (!Array.isArray(reply)) throw new Error('A Redis script gave no list');
      return reply[0] === 'admitted' ? undefined : Number(reply[3]);
    },

    /** `lifeMs`: the session's remaining life. Safe to repeat. */
    async endSession(session: string, lifeMs: number): Promise<void> {
      await client.set(endedSession(session), '1', 'PX', Math.max(1, Math.ceil(lifeMs)));
    },

    async isEnded(session: string): Promise<boolean> {
      return (await client.exists(endedSession(session))) === 1;
    },
  };
}
