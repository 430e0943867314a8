import type { OnDrift } from '../../../domain/usage/compare-book.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { streamPages } from '../pages.ts';
import { defineScript } from '../scripts.ts';

/** What Redis knows of one tenant's account, held against the records of its requests. */
export interface AuditedAccount {
  tenantId: string;
  /** Undefined: Redis has not loaded the account. */
  version: number | undefined;
  bookMicro: number;
  heldDriftMicro: number;
  pendingDriftMicro: number;
}

export interface AccountAudit {
  /** Recounts holds and pending charges; `repair` sets the sums right in the same step. Safe to repeat. */
  recount(shard: number, tenantIds: readonly string[], options: { onDrift: OnDrift }): Promise<AuditedAccount[]>;
  /** Requests of a tenant whose charge is pending, some at a time; one may come twice. */
  pendingIds(shard: number, tenantId: string): AsyncIterable<string[]>;
  /** How many settlement records wait in the outbox or are dead letters. */
  waiting(shard: number): Promise<number>;
  /** Which of the requests are neither in the outbox nor among the dead letters; reads all of both. */
  notWaiting(shard: number, requestIds: readonly string[]): Promise<string[]>;
  /** Which of the requests have no record any more, so that no worker can bring the settlement again. */
  withoutRecord(shard: number, requestIds: readonly string[]): Promise<string[]>;
}

/** Pending requests at a time, about: Redis gives out a small hash as a whole. */
const PENDING_AT_ONCE = 1_000;

export function createAccountAudit(client: RedisClient, keyspace: Keyspace): AccountAudit {
  const recount = defineScript(client, 'recount', ['window', 'account']);

  /** Takes out of `ids` whatever stands in the stream. */
  async function strike(stream: string, ids: Set<string>): Promise<void> {
    for await (const rows of streamPages(client, stream)) {
      for (const [, fields] of rows) {
        const requestId = /"requestId":"(req_\w+)"/.exec(fields[1] ?? '')?.[1];
        if (requestId !== undefined) ids.delete(requestId);
      }
    }
  }

  return {
    async recount(shard, tenantIds, { onDrift }) {
      if (tenantIds.length === 0) return [];
      const keys = keyspace.shard(shard);
      const accounts = tenantIds.flatMap((tenantId) => [keys.account(tenantId), keys.pending(tenantId)]);
      const reply = await recount(
        [keys.inflight, ...accounts],
        [keys.record(''), onDrift === 'repair' ? 1 : 0, ...tenantIds],
      );
      const rows = Array.isArray(reply) ? reply : [];
      return rows.map((row, index) => {
        const [version, book, held, pending] = Array.isArray(row) ? row.map(String) : [];
        return {
          tenantId: tenantIds[index] ?? '',
          version: version === '' || version === undefined ? undefined : Number(version),
          bookMicro: Number(book),
          heldDriftMicro: Number(held),
          pendingDriftMicro: Number(pending),
        };
      });
    },

    async *pendingIds(shard, tenantId) {
      for (let cursor = '0'; ;) {
        const [next, fields] = await client.hscan(
          keyspace.shard(shard).pending(tenantId),
          cursor,
          'COUNT',
          PENDING_AT_ONCE,
        );
        // Names and values in turn.
        const ids = fields.filter((_, index) => index % 2 === 0);
        if (ids.length > 0) yield ids;
        if (next === '0') return;
        cursor = next;
      }
    },

    async waiting(shard) {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const lengths = await Promise.all([client.xlen(outbox), client.xlen(deadLetters)]);
      return lengths[0] + lengths[1];
    },

    async notWaiting(shard, requestIds) {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const ids = new Set(requestIds);
      // A record may go from either to the other meanwhile, so the dead letters are read before and after.
      for (const stream of [deadLetters, outbox, deadLetters]) await strike(stream, ids);
      return [...ids];
    },

    async withoutRecord(shard, requestIds) {
      const { record } = keyspace.shard(shard);
      const found = await Promise.all(requestIds.map((id) => client.exists(record(id))));
      return requestIds.filter((_, index) => found[index] === 0);
    },
  };
}
