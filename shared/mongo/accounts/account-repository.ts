import type { ClientSession, Connection, Model } from 'mongoose';

import { KIND_NAMES } from '../../contracts/events.ts';
import { monthOf } from '../../domain/pricing.ts';
import type { AccountState } from '../../domain/account-events.ts';
import { newId } from '../../lifecycle/ids.ts';
import { isDuplicateKey } from '../connection.ts';
import { collection } from '../collection.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';
import { addUsage, toBooked, usageRollUpModel } from './usage-repository.ts';

export interface AccountRow {
  _id: string;
  balanceMicro: number;
  /** Rises by one with every change of the balance. */
  version: number;
  /** Billed tokens by month, `202611`. */
  tokensByMonth: Record<string, number>;
  /** The latest grant or purchase, and the balance it left. Missing in rows of versions without webhooks. */
  lastTopUp?: { transactionId: string; balanceMicro: number };
  /** The next ledger entry's time is later. */
  lastEntryAt?: number;
}

export const accountModel = collection<AccountRow>('accounts');

export interface LedgerBalance {
  balanceMicro: number;
  /** Rises by one with every change; Redis takes only a higher one. */
  version: number;
  tokensByMonth: Record<string, number>;
}

interface BookEntry {
  /** Booking the same id again books nothing; by default the id is new. */
  transactionId?: string;
  tenantId: string;
  type: 'grant' | 'purchase' | 'adjustment';
  /** Signed micro-credits. */
  amountMicro: number;
  reason: string;
  /** This charge is given back, with all that it counts. */
  refunded?: LedgerRow;
  /** Milliseconds since the epoch. */
  now: number;
}

function budgetBack({ mode, promptTokens = 0, completionTokens = 0, createdAt, acceptedAt = createdAt }: LedgerRow) {
  return mode === 'test' ? {} : { tokensByMonth: { [monthOf(acceptedAt)]: 0 - promptTokens - completionTokens } };
}

const COUNTS = ['promptTokens', 'completionTokens', ...KIND_NAMES] as const;

/** Negated, so that the ledger's sums by day lose the request as its budget and usage do. */
function countsBack({ spend, ...row }: LedgerRow): Partial<LedgerRow> {
  const { mode = 'live', estimated = false, acceptedAt = row.createdAt } = row;
  const back: Partial<LedgerRow> = { mode, estimated, acceptedAt };
  for (const name of COUNTS) if (row[name] !== undefined) back[name] = 0 - row[name];
  return spend === undefined ? back : { ...back, spend: { ...spend, nano: 0 - spend.nano } };
}

function toLedgerRow(
  _id: string,
  { tenantId, type, amountMicro, reason, refunded }: BookEntry,
  { balanceMicro: balanceAfterMicro, lastEntryAt: createdAt }: MovedAccount,
): LedgerRow {
  const counts = refunded === undefined ? {} : countsBack(refunded);
  return { _id, tenantId, type, amountMicro, reason, balanceAfterMicro, createdAt, ...counts };
}

async function takeOut(connection: Connection, charge: LedgerRow, session: ClientSession): Promise<void> {
  const request = toBooked(charge);
  if (request === undefined) return;
  await ledgerModel(connection).updateOne({ _id: charge._id }, { $set: { refunded: true } }, { session });
  await addUsage(usageRollUpModel(connection), [request], session, { sign: -1 });
}

export type AccountRepository = ReturnType<typeof createAccountRepository>;

export function createAccountRepository(connection: Connection) {
  const accounts = accountModel(connection);
  const ledger = ledgerModel(connection);

  async function booked(tenantId: string, transactionId: string) {
    const entry = await ledger.findOne({ _id: transactionId, tenantId }).lean();
    const account = entry === null ? null : await accounts.findById(tenantId).lean();
    return entry === null || account === null ? undefined : { entry, book: toLedgerBalance(account) };
  }

  return {
    /** Safe to repeat. */
    async open(tenantId: string): Promise<void> {
      const setOnInsert = { balanceMicro: 0, version: 0, tokensByMonth: {} };
      await accounts.updateOne({ _id: tenantId }, { $setOnInsert: setOnInsert }, { upsert: true });
    },

    async read(tenantId: string): Promise<LedgerBalance | undefined> {
      const row = await accounts.findById(tenantId).lean();
      return row === null ? undefined : toLedgerBalance(row);
    },

    /** The entry booked under an id, and the ledger balance at present. */
    booked,

    /** Writes both the ledger entry and the balance, or neither. */
    async book(entry: BookEntry): Promise<{ entry: LedgerRow; book: LedgerBalance }> {
      const { tenantId, amountMicro, refunded, transactionId = newId('txn'), now } = entry;
      // A refund is no top-up: its tenant is told of low credits as before.
      const about = refunded === undefined ? { transactionId } : budgetBack(refunded);
      const move = async (session: ClientSession) => {
        const account = await moveAccount(accounts, { tenantId, amountMicro, now, ...about }, session);
        if (account === undefined) throw new Error(`Tenant ${tenantId} has no account`);
        const line = toLedgerRow(transactionId, entry, account);
        await ledger.create([line], { session });
        if (refunded !== undefined) await takeOut(connection, refunded, session);
        return { entry: line, book: toLedgerBalance(account) };
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

export function toLedgerBalance(row: LedgerBalance): LedgerBalance {
  return { balanceMicro: row.balanceMicro, version: row.version, tokensByMonth: row.tokensByMonth };
}

export interface AccountMove {
  tenantId: string;
  /** Set for a grant, purchase or adjustment; not for a charge given back. */
  transactionId?: string;
  /** Signed micro-credits. */
  amountMicro: number;
  /** Negative where they are given back. */
  tokensByMonth?: Readonly<Record<string, number>>;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Ledger entries of the booking carry its `lastEntryAt` as their time. */
export type MovedAccount = AccountRow & { lastEntryAt: number };

const plus = (field: string, amount: number) => ({ $add: [{ $ifNull: [`$${field}`, 0] }, amount] });

/**
 * Moves an account within a transaction, once for each booking. Its entries get a later time than all before, whichever
 * process booked them: so a list by time is in the order of booking, and an entry's balance is the sum of the list up
 * to it. Undefined: there is no such account.
 */
export async function moveAccount(
  accounts: Model<AccountRow>,
  { tenantId, transactionId, amountMicro, tokensByMonth = {}, now }: AccountMove,
  session: ClientSession,
): Promise<MovedAccount | undefined> {
  const months = Object.entries(tokensByMonth).map(([month, tokens]) => {
    const field = `tokensByMonth.${month}`;
    return [field, plus(field, tokens)] as const;
  });
  const balanceMicro = plus('balanceMicro', amountMicro);
  const isTopUp = transactionId !== undefined && amountMicro > 0;
  const moved = {
    balanceMicro,
    ...(isTopUp ? { lastTopUp: { transactionId, balanceMicro } } : {}),
    version: plus('version', 1),
    lastEntryAt: { $max: [now, plus('lastEntryAt', 1)] },
    ...Object.fromEntries(months),
  };
  const row = await accounts
    .findOneAndUpdate({ _id: tenantId }, [{ $set: moved }], { session, returnDocument: 'after', updatePipeline: true })
    .lean();
  return row === null ? undefined : { ...row, lastEntryAt: row.lastEntryAt ?? now };
}

export type AccountStates = ReturnType<typeof createAccountStates>;

export function createAccountStates(connection: Connection) {
  const accounts = accountModel(connection);
  const tenants = tenantModel(connection);
  return {
    /** Thresholds depend on these figures; undefined: there is no such tenant. */
    async read(tenantId: string): Promise<{ account: AccountState; monthlyTokenBudget: number | null } | undefined> {
      const [account, tenant] = await Promise.all([
        accounts.findById(tenantId).lean(),
        tenants.findById(tenantId, { monthlyTokenBudget: 1 }).lean(),
      ]);
      return account === null || tenant === null
        ? undefined
        : { account, monthlyTokenBudget: tenant.monthlyTokenBudget };
    },
  };
}
