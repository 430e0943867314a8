import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { RedisClient } from '../connection.ts';
import { unlimited } from '../timing.ts';
import type { TimeLimit } from '../timing.ts';

/** The book as MongoDB has it; see `Book` in shared/infra/mongo/accounts/account-repository.ts. */
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
