import type { OnDrift } from '../../domain/compare-ledger.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { streamPages } from '../pages.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';
import { unlimited } from '../time-limits.ts';
import type { TimeLimit } from '../time-limits.ts';

/** From MongoDB; see `LedgerBalance` in shared/mongo/accounts/account-repository.ts. */
export interface PublishedBalance {
  balanceMicro: number;
  version: number;
  tokensByMonth: Record<string, number>;
}

export interface AccountFigures {
  /** Undefined: not loaded from MongoDB yet. */
  ledgerMicro: number | undefined;
  pendingMicro: number;
  heldMicro: number;
  budgetUsedTokens: number;
  budgetHeldTokens: number;
}

export type AccountStore = ReturnType<typeof createAccountStore>;

/** Lua takes some 8,000 values in one call at most, and Redis serves nobody else meanwhile. */
const SETTLED_AT_ONCE = 1_000;

export function createAccountStore(client: RedisClient, keyspace: Keyspace, limit: TimeLimit = unlimited) {
  const publish = defineScript(client, 'publish-balance');
  return {
    /** A higher version replaces a lower one; charges of `settledIds` stop being pending. Safe to repeat. */
    async publishBalance(
      shard: number,
      tenantId: string,
      balance: PublishedBalance,
      settledIds: readonly string[] = [],
    ): Promise<void> {
      const keys = keyspace.shard(shard);
      const months = Object.entries(balance.tokensByMonth);
      const fields = [balance.version, balance.balanceMicro, months.length, ...months.flat()];
      // Runs once even without settled ids, for the balance.
      for (let from = 0; from === 0 || from < settledIds.length; from += SETTLED_AT_ONCE) {
        const ids = settledIds.slice(from, from + SETTLED_AT_ONCE);
        await limit(publish([keys.account(tenantId), keys.pending(tenantId)], [...fields, ...ids]));
      }
    },

    /** `month`: see monthOf in shared/domain/pricing. */
    async read(shard: number, tenantId: string, month: string): Promise<AccountFigures> {
      const tokens = ['ledgerTokens', 'pendingTokens', 'heldTokens'].map((name) => `${name}:${month}`);
      const key = keyspace.shard(shard).account(tenantId);
      const values = await limit(client.hmget(key, 'ledgerBalance', 'pending', 'held', ...tokens));
      const [ledger = 0, pendingMicro = 0, heldMicro = 0, booked = 0, pending = 0, held = 0] = values.map(Number);
      return {
        ledgerMicro: values[0] === null ? undefined : ledger,
        pendingMicro,
        heldMicro,
        budgetUsedTokens: booked + pending,
        budgetHeldTokens: held,
      };
    },
  };
}

/** Compared with the records of the tenant's requests. */
export interface AuditedAccount {
  tenantId: string;
  /** Undefined: Redis has not loaded the account. */
  version: number | undefined;
  ledgerMicro: number;
  heldDriftMicro: number;
  pendingDriftMicro: number;
}

export type AccountAudit = ReturnType<typeof createAccountAudit>;

/** Approximate: Redis returns a small hash as a whole. */
const PENDING_AT_ONCE = 1_000;

/** Removes from `ids` those in the stream. */
async function strike(client: RedisClient, stream: string, ids: Set<string>): Promise<void> {
  for await (const rows of streamPages(client, stream)) {
    for (const [, fields] of rows) {
      const requestId = /"requestId":"(req_\w+)"/.exec(fields[1] ?? '')?.[1];
      if (requestId !== undefined) ids.delete(requestId);
    }
  }
}

function toAudited(tenantId: string, row: ScriptReply): AuditedAccount {
  const [version, ledger, held, pending] = Array.isArray(row) ? row.map(String) : [];
  return {
    tenantId,
    version: version === '' || version === undefined ? undefined : Number(version),
    ledgerMicro: Number(ledger),
    heldDriftMicro: Number(held),
    pendingDriftMicro: Number(pending),
  };
}

export function createAccountAudit(client: RedisClient, keyspace: Keyspace) {
  const recount = defineScript(client, 'recount');

  return {
    /** Recounts holds and pending charges; `repair` corrects the sums in the same step. Safe to repeat. */
    async recount(shard: number, tenantIds: readonly string[], how: { onDrift: OnDrift }): Promise<AuditedAccount[]> {
      if (tenantIds.length === 0) return [];
      const keys = keyspace.shard(shard);
      const accounts = tenantIds.flatMap((tenantId) => [keys.account(tenantId), keys.pending(tenantId)]);
      const reply = await recount(
        [keys.inflight, ...accounts],
        [keys.record(''), how.onDrift === 'repair' ? 1 : 0, ...tenantIds],
      );
      const rows = Array.isArray(reply) ? reply : [];
      return rows.map((row, index) => toAudited(tenantIds[index] ?? '', row));
    },

    /** Requests of a tenant whose charge is pending, some at a time; one may come twice. */
    async *pendingIds(shard: number, tenantId: string): AsyncIterable<string[]> {
      const pending = keyspace.shard(shard).pending(tenantId);
      for (let cursor = '0'; ;) {
        const [next, fields] = await client.hscan(pending, cursor, 'COUNT', PENDING_AT_ONCE);
        // Names and values in turn.
        const ids = fields.filter((_, index) => index % 2 === 0);
        if (ids.length > 0) yield ids;
        if (next === '0') return;
        cursor = next;
      }
    },

    /** In the outbox or among the dead letters. */
    async waiting(shard: number): Promise<number> {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const lengths = await Promise.all([client.xlen(outbox), client.xlen(deadLetters)]);
      return lengths[0] + lengths[1];
    },

    /** Reads all of the outbox and the dead letters; returns requests in neither. */
    async notWaiting(shard: number, requestIds: readonly string[]): Promise<string[]> {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const ids = new Set(requestIds);
      // A record may move either way meanwhile, so the dead letters are read before and after.
      for (const stream of [deadLetters, outbox, deadLetters]) await strike(client, stream, ids);
      return [...ids];
    },

    /** Finds requests without a record, so that no worker can bring the settlement again. */
    async withoutRecord(shard: number, requestIds: readonly string[]): Promise<string[]> {
      const { record } = keyspace.shard(shard);
      const found = await Promise.all(requestIds.map((id) => client.exists(record(id))));
      return requestIds.filter((_, index) => found[index] === 0);
    },
  };
}

/** Drift that each shard's last reconciliation left, by part, for whoever asks another process. */
export type LastDrift = ReturnType<typeof createLastDrift>;

export function createLastDrift(client: RedisClient, keyspace: Keyspace) {
  return {
    async keep(shard: number, drift: Readonly<Record<string, number>>): Promise<void> {
      const parts = Object.entries(drift).flat();
      if (parts.length > 0) await client.hset(keyspace.shard(shard).drift, ...parts);
    },
    /** Undefined: not reconciled yet. */
    async read(shard: number): Promise<Record<string, number> | undefined> {
      const parts = Object.entries(await client.hgetall(keyspace.shard(shard).drift));
      return parts.length === 0 ? undefined : Object.fromEntries(parts.map(([part, amount]) => [part, Number(amount)]));
    },
  };
}
