import type { ClientSession, Connection } from 'mongoose';

import { newId } from '../../../lifecycle/ids.ts';
import { isDuplicateKey } from '../connection.ts';
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
  /** Whoever books with the same id again books nothing; a new one by default. */
  transactionId?: string;
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
  book(entry: BookEntry): Promise<{ entry: LedgerRow; book: Book }>;
  /** What was booked under an id, and the book as it is now. */
  booked(tenantId: string, transactionId: string): Promise<{ entry: LedgerRow; book: Book } | undefined>;
}

export function createAccountRepository(connection: Connection, models: Models): AccountRepository {
  async function booked(tenantId: string, transactionId: string) {
    const entry = await models.ledger.findOne({ _id: transactionId, tenantId }).lean();
    const account = entry === null ? null : await models.accounts.findById(tenantId).lean();
    return entry === null || account === null ? undefined : { entry, book: toBook(account) };
  }

  return {
    async open(tenantId) {
      const setOnInsert = { balanceMicro: 0, version: 0, tokensByMonth: {} };
      await models.accounts.updateOne({ _id: tenantId }, { $setOnInsert: setOnInsert }, { upsert: true });
    },

    async read(tenantId) {
      const row = await models.accounts.findById(tenantId).lean();
      return row === null ? undefined : toBook(row);
    },

    booked,

    async book(entry) {
      const { tenantId, type, amountMicro, reason, transactionId = newId('txn') } = entry;
      const move = async (session: ClientSession) => {
        const account = await moveAccount(models, { ...entry, transactionId }, session);
        if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
        const { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt } = account;
        const line: LedgerRow = {
          _id: transactionId,
          ...{ tenantId, type, amountMicro, reason, balanceAfterMicro, createdAt },
        };
        await models.ledger.create([line], { session });
        return { entry: line, book: toBook(account) };
      };
      try {
        return await connection.transaction(move);
      } catch (error) {
        const before = isDuplicateKey(error) ? await booked(tenantId, transactionId) : undefined;
        if (before === undefined) throw error;
        return before;
      }
    },
  };
}

export function toBook(row: Book): Book {
  return { balanceMicro: row.balanceMicro, version: row.version, tokensByMonth: row.tokensByMonth };
}
