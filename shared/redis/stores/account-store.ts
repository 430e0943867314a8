import type { OnDrift } from '../../domain/compare-book.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { streamPages } from '../pages.ts';
import { defineScript } from '../scripts.ts';
import { unlimited } from '../time-limits.ts';
import type { TimeLimit } from '../time-limits.ts';

/** The book as MongoDB has it; see `Book` in shared/mongo/accounts/account-repository.ts. */
export interface PublishedBook {
  balanceMicro: number;
  version: number;
  tokensByMonth: Record<string, number>;
}

export interface AccountFigures {
  /** Undefined: not loaded from MongoDB yet. */
  bookMicro: number | undefined;
  pendingMicro: number;
  heldMicro: number;
  budgetUsedTokens: number;
  budgetHeldTokens: number;
}

export interface AccountStore {
  /** A higher version replaces a lower one; charges of `settledIds` stop being pending. Safe to repeat. */
  publishBook(shard: number, tenantId: string, book: PublishedBook, settledIds?: readonly string[]): Promise<void>;
  /** `month`: see monthOf in shared/domain/pricing. */
  read(shard: number, tenantId: string, month: string): Promise<AccountFigures>;
}

/** Lua takes at most some 8,000 values in one call, and Redis serves nobody else meanwhile. */
const SETTLED_AT_ONCE = 1_000;

export function createAccountStore(
  client: RedisClient,
  keyspace: Keyspace,
  limit: TimeLimit = unlimited,
): AccountStore {
  const publish = defineScript(client, 'publish-book', ['window', 'account']);
  const read = defineScript(client, 'read-account');
  return {
    async publishBook(shard, tenantId, book, settledIds = []) {
      const keys = keyspace.shard(shard);
      const months = Object.entries(book.tokensByMonth);
      const fields = [book.version, book.balanceMicro, months.length, ...months.flat()];
      // At least once: the book is published even without settled ids.
      for (let from = 0; from === 0 || from < settledIds.length; from += SETTLED_AT_ONCE) {
        const ids = settledIds.slice(from, from + SETTLED_AT_ONCE);
        await limit(publish([keys.account(tenantId), keys.pending(tenantId)], [...fields, ...ids]));
      }
    },

    async read(shard, tenantId, month) {
      const reply = await limit(read([keyspace.shard(shard).account(tenantId)], [month]));
      const values = Array.isArray(reply) ? reply.map(String) : [];
      const figure = (index: number) => Number(values[index] ?? 0);
      return {
        bookMicro: values[0] === undefined || values[0] === '' ? undefined : figure(0),
        pendingMicro: figure(1),
        heldMicro: figure(2),
        budgetUsedTokens: figure(3) + figure(4),
        budgetHeldTokens: figure(5),
      };
    },
  };
}

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

/** What each shard's last reconciliation left wrong, by part, for whoever asks another process. */
export interface LastDrift {
  keep(shard: number, drift: Readonly<Record<string, number>>): Promise<void>;
  /** Undefined: the shard has not been reconciled yet. */
  read(shard: number): Promise<Record<string, number> | undefined>;
}

export function createLastDrift(client: RedisClient, keyspace: Keyspace): LastDrift {
  return {
    async keep(shard, drift) {
      const parts = Object.entries(drift).flat();
      if (parts.length > 0) await client.hset(keyspace.shard(shard).drift, ...parts);
    },
    async read(shard) {
      const parts = Object.entries(await client.hgetall(keyspace.shard(shard).drift));
      return parts.length === 0 ? undefined : Object.fromEntries(parts.map(([part, amount]) => [part, Number(amount)]));
    },
  };
}
