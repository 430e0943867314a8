import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Who is kept out of the administration: addresses that guess tokens, and sessions that were ended. */
export interface AdminAccessStore {
  /** Counts a failed token of an address. Undefined: it may try again; else the time until it may, in milliseconds. */
  countFailure(requestId: string, address: string): Promise<number | undefined>;
  /** `lifeMs`: how long the session would have lasted. Safe to repeat. */
  endSession(session: string, lifeMs: number): Promise<void>;
  isEnded(session: string): Promise<boolean>;
}

export function createAdminAccessStore(
  client: RedisClient,
  keyspace: Keyspace,
  { failuresPerMinute }: { failuresPerMinute: number },
): AdminAccessStore {
  const count = defineScript(client, 'count-address', ['window']);
  const { failures, endedSession } = keyspace.administration;
  return {
    async countFailure(requestId, address) {
      const reply = await count([failures(address)], [requestId, failuresPerMinute]);
      if (!Array.isArray(reply)) throw new Error('A Redis script gave no list');
      return reply[0] === 'admitted' ? undefined : Number(reply[3]);
    },

    async endSession(session, lifeMs) {
      await client.set(endedSession(session), '1', 'PX', Math.max(1, Math.ceil(lifeMs)));
    },

    async isEnded(session) {
      return (await client.exists(endedSession(session))) === 1;
    },
  };
}
