import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { inTime } from '../timing.ts';

/** Longer than any cached principal may live, as for the flags of revoked keys. */
const MOVED_MS = 24 * 60 * 60_000;

/** The mark with which a move closes a shard for its tenant. */
export const movingMark = (token: string): string => `moving ${token}`;
/** The mark on a tenant's former shard, which says where the tenant is. */
export const movedMark = (shard: number): string => `moved ${shard}`;

/** The shard to which a tenant has moved; undefined: it is on its way. */
export function readMark(mark: string): number | undefined {
  const shard = /^moved (\d+)$/.exec(mark)?.[1];
  return shard === undefined ? undefined : Number(shard);
}

/**
 * The marks of tenants that are moved. Admission reads them, so a process that knows only the former shard cannot admit
 * anything there (docs/decisions/0002-tenant-shards.md).
 */
export interface MoveMarks {
  /** From now on this shard admits nothing of the tenant. */
  close(shard: number, tenantId: string, token: string): Promise<void>;
  isClosed(shard: number, tenantId: string, token: string): Promise<boolean>;
  /** Takes this very mark away. */
  take(shard: number, tenantId: string, mark: string): Promise<void>;
  /** Whoever comes here finds the tenant on `to`, in place of this very mark ('' any). False: it is not there. */
  leave(shard: number, tenantId: string, mark: string, to: number): Promise<boolean>;
  /** The mark of a move, whichever; undefined: the shard is open. */
  find(shard: number, tenantId: string): Promise<string | undefined>;
}

export function createMoveMarks(client: RedisClient, keyspace: Keyspace): MoveMarks {
  const mark = defineScript(client, 'mark-move');

  async function change(shard: number, tenantId: string, from: string, to: string, lifeMs: number): Promise<boolean> {
    return (await inTime(mark([keyspace.shard(shard).blocked(tenantId)], [from, to, lifeMs]))) === 1;
  }

  async function find(shard: number, tenantId: string): Promise<string | undefined> {
    const found = await inTime(client.get(keyspace.shard(shard).blocked(tenantId)));
    return found === null || found === '1' ? undefined : found;
  }

  return {
    find,
    async close(shard, tenantId, token) {
      await change(shard, tenantId, '', movingMark(token), 0);
    },
    isClosed: async (shard, tenantId, token) => (await find(shard, tenantId)) === movingMark(token),
    async take(shard, tenantId, own) {
      await change(shard, tenantId, own, '', 0);
    },
    leave: (shard, tenantId, own, to) => change(shard, tenantId, own, movedMark(to), MOVED_MS),
  };
}
