import type { ClientSession, Connection } from 'mongoose';

import type { SettlementRecord } from '../../contracts/settlement.ts';
import { kindsOf } from '../../contracts/events.ts';
import { monthOf } from '../../domain/pricing.ts';
import { isBadDocument, isMongoAway } from '../faults.ts';
import { toLedgerBalance, accountModel, moveAccount } from './account-repository.ts';
import type { LedgerBalance, AccountMove } from './account-repository.ts';
import { ledgerIdOf, ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';
import { addUsage, usageRollUpModel } from './usage-repository.ts';

/** One of a batch's records is at fault: its tenant has no account, or MongoDB can never store it. */
export class UnbookableError extends Error {
  override readonly name = 'UnbookableError';
}

/** MongoDB refused a batch without telling whether a record is at fault. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

export type SettlementRepository = ReturnType<typeof createSettlementRepository>;

function toLedgerRow(record: SettlementRecord, now: number, balanceAfterMicro: number): LedgerRow {
  return {
    _id: ledgerIdOf(record.requestId),
    tenantId: record.tenantId,
    type: 'usage',
    // `0 - cost`: a plain minus would store -0 for a test key.
    amountMicro: 0 - record.costMicro,
    balanceAfterMicro,
    createdAt: now,
    requestId: record.requestId,
    keyId: record.keyId,
    mode: record.mode,
    endpoint: record.endpoint,
    tier: record.tier,
    ...(record.entityId === undefined ? {} : { entityId: record.entityId }),
    provider: record.provider,
    model: record.model,
    promptTokens: record.promptTokens,
    completionTokens: record.completionTokens,
    ...kindsOf(record),
    estimated: record.estimated,
    finishReason: record.finishReason,
    acceptedAt: record.acceptedAt,
    ...(record.spend === undefined ? {} : { spend: record.spend }),
  };
}

function moveOf(tenantId: string, records: readonly SettlementRecord[], now: number): AccountMove {
  const tokensByMonth: Record<string, number> = {};
  let amountMicro = 0;
  for (const record of records) {
    if (record.mode === 'test') continue;
    const month = monthOf(record.acceptedAt);
    amountMicro -= record.costMicro;
    tokensByMonth[month] = (tokensByMonth[month] ?? 0) + record.promptTokens + record.completionTokens;
  }
  return { tenantId, amountMicro, tokensByMonth, now };
}

/** Entries of one time are listed by id, so the running balance follows that order. */
function toLedgerRows(records: readonly SettlementRecord[], now: number, balanceBeforeMicro: number): LedgerRow[] {
  let balanceMicro = balanceBeforeMicro;
  const ordered = records.toSorted((one, other) => (one.requestId < other.requestId ? -1 : 1));
  return ordered.map((record) => {
    balanceMicro -= record.costMicro;
    return toLedgerRow(record, now, balanceMicro);
  });
}

/** Skips records that the ledger knows. Returns the books that it moved. */
async function bookFresh(
  accounts: ReturnType<typeof accountModel>,
  ledger: ReturnType<typeof ledgerModel>,
  usageRollUps: ReturnType<typeof usageRollUpModel>,
  fresh: readonly SettlementRecord[],
  session: ClientSession,
  now: number,
): Promise<Map<string, LedgerBalance>> {
  const books = new Map<string, LedgerBalance>();
  if (fresh.length === 0) return books;
  const rows: LedgerRow[] = [];
  for (const [tenantId, own] of Map.groupBy(fresh, (record) => record.tenantId)) {
    const move = moveOf(tenantId, own, now);
    const account = await moveAccount(accounts, move, session);
    if (account === undefined) throw new UnbookableError(`Tenant ${tenantId} has no account`);
    rows.push(...toLedgerRows(own, account.lastEntryAt, account.balanceMicro - move.amountMicro));
    books.set(tenantId, toLedgerBalance(account));
  }
  // `lean`: the rows are ours, and hydrating a document for each costs more than the insert.
  await ledger.insertMany(rows, { session, lean: true });
  await addUsage(usageRollUps, fresh, session);
  return books;
}

export function createSettlementRepository(connection: Connection) {
  const accounts = accountModel(connection);
  const ledger = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);

  async function withoutKnown(records: readonly SettlementRecord[], session: ClientSession) {
    const ids = records.map((record) => ledgerIdOf(record.requestId));
    const known = await ledger.find({ _id: { $in: ids } }, { _id: 1 }, { session }).lean();
    const knownIds = new Set(known.map((row) => row._id));
    return records.filter((record) => !knownIds.has(ledgerIdOf(record.requestId)));
  }

  /**
   * Reads first. A call that a worker without a path to MongoDB has given up may arrive later: a write would lock its
   * accounts, and so its shard's settlement, until MongoDB ends the transaction after a minute.
   */
  const bookOnce = (records: readonly SettlementRecord[], now: number): Promise<Map<string, LedgerBalance>> =>
    connection.transaction(async (session) =>
      bookFresh(accounts, ledger, usageRollUps, await withoutKnown(records, session), session, now),
    );

  return {
    /**
     * Books a batch in one transaction: skips requests that the ledger knows, and moves each tenant's balance and usage
     * roll-ups by exactly the rest. Safe to repeat. Returns the ledger balance of every tenant in the batch. Throws an
     * UnbookableError where a record is at fault, a RefusedError where that is unknown; any other error means that
     * MongoDB cannot serve.
     */
    async settle(records: readonly SettlementRecord[], now: number): Promise<Map<string, LedgerBalance>> {
      const unique = [...new Map(records.map((record) => [record.requestId, record])).values()];
      let books: Map<string, LedgerBalance>;
      try {
        books = await bookOnce(unique, now);
      } catch (error) {
        if (error instanceof UnbookableError || isMongoAway(error)) throw error;
        if (isBadDocument(error)) throw new UnbookableError('A record can never be stored', { cause: error });
        throw new RefusedError('A settlement batch was refused', { cause: error });
      }
      const unmoved = unique.map(({ tenantId }) => tenantId).filter((tenantId) => !books.has(tenantId));
      if (unmoved.length === 0) return books;
      const rows = await accounts.find({ _id: { $in: [...new Set(unmoved)] } }).lean();
      return new Map([...books, ...rows.map((row) => [row._id, toLedgerBalance(row)] as const)]);
    },
  };
}
