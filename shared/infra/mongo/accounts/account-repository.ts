import type { Connection } from 'mongoose';

import { newId } from '../../../lifecycle/ids.ts';
import type { Models } from '../models.ts';
import { moveAccount } from './move-account.ts';
import type { LedgerRow } from '../rows.ts';

/** A tenant's account as the book has it. */
export interface Book {
  balanceMicro: number;
  /** Rises by one with every change; Redis takes only a higher one. */
  version: number;
  tokensByMonth: Record<string, number>;
}

export interface BookEntry {
  tenantId: string;
  type: 'grant' | 'purchase' | 'adjustment';
  /** Signed micro-credits. */
  amountMicro: number;
  reason: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface AccountRepository {
  /** Makes the account with a balance of zero; safe to repeat. */
  open(tenantId: string): Promise<void>;
  read(tenantId: string): Promise<Book | undefined>;
  /** Adds one ledger entry and moves the balance by it, both or neither. */
  book(entry: BookEntry): Promise<{ transactionId: string; book: Book }>;
}

export function createAccountRepository(connection: Connection, models: Models): AccountRepository {
  return {
    async open(tenantId) {
      const setOnInsert = { balanceMicro: 0, version: 0, tokensByMonth: {} };
      await models.accounts.updateOne({ _id: tenantId }, { $setOnInsert: setOnInsert }, { upsert: true });
    },

    async read(tenantId) {
      const row = await models.accounts.findById(tenantId).lean();
      return row === null ? undefined : toBook(row);
    },

    async book(entry) {
      const transactionId = newId('txn');
      const { tenantId, type, amountMicro, reason } = entry;
      const book = await connection.transaction(async (session) => {
        const account = await moveAccount(models, { ...entry, transactionId }, session);
        if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
        const { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt } = account;
        const line: LedgerRow = {
          _id: transactionId,
          ...{ tenantId, type, amountMicro, reason, balanceAfterMicro, createdAt },
        };
        await models.ledger.create([line], { session });
        return toBook(account);
      });
      return { transactionId, book };
    },
  };
}

export function toBook(row: Book): Book {
  return { balanceMicro: row.balanceMicro, version: row.version, tokensByMonth: row.tokensByMonth };
}
