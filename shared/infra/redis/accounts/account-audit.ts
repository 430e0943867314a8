import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
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
  /** Recounts holds and pending charges; with `repair` the sums are set right in the same step. Safe to repeat. */
  recount(shard: number, tenantIds: readonly string[], options: { repair: boolean }): Promise<AuditedAccount[]>;
  pendingIds(shard: number, tenantId: string): Promise<string[]>;
  /** Which of the requests wait in the outbox, or are dead letters. */
  waiting(shard: number): Promise<Set<string>>;
  /** Whether the request's record is still there: its worker may yet bring the settlement again. */
  hasRecord(shard: number, requestId: string): Promise<boolean>;
}

const PAGE = 500;

export function createAccountAudit(client: RedisClient, keyspace: Keyspace): AccountAudit {
  const recount = defineScript(client, 'recount', ['window', 'account']);

  async function idsIn(stream: string, ids: Set<string>): Promise<void> {
    for (let from = '-'; ;) {
      const entries = await client.xrange(stream, from, '+', 'COUNT', PAGE);
      for (const [, fields] of entries) {
        const requestId = /"requestId":"(req_\w+)"/.exec(fields[1] ?? '')?.[1];
        if (requestId !== undefined) ids.add(requestId);
      }
      const last = entries.at(-1)?.[0];
      if (entries.length < PAGE || last === undefined) return;
      from = `(${last}`;
    }
  }

  return {
    async recount(shard, tenantIds, { repair }) {
      if (tenantIds.length === 0) return [];
      const keys = keyspace.shard(shard);
      const accounts = tenantIds.flatMap((tenantId) => [keys.account(tenantId), keys.pending(tenantId)]);
      const reply = await recount([keys.inflight, ...accounts], [keys.record(''), repair ? 1 : 0, ...tenantIds]);
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

    pendingIds: (shard, tenantId) => client.hkeys(keyspace.shard(shard).pending(tenantId)),

    async waiting(shard) {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const ids = new Set<string>();
      await idsIn(outbox, ids);
      await idsIn(deadLetters, ids);
      return ids;
    },

    async hasRecord(shard, requestId) {
      return (await client.exists(keyspace.shard(shard).record(requestId))) === 1;
    },
  };
}
