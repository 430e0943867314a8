import type { ClientSession, Connection } from 'mongoose';

import { compareBook } from '../../../domain/usage/compare-book.ts';
import type { BookComparison, LedgerGroup, RollUpGroup } from '../../../domain/usage/compare-book.ts';
import { BUCKET_MS } from '../../../domain/usage/roll-up.ts';
import type { BookedRequest, UsageCounts } from '../../../domain/usage/roll-up.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { toBook } from './account-repository.ts';
import { accountModel } from './account-repository.ts';
import type { Book } from './account-repository.ts';
import { ledgerIdOf, ledgerModel } from './ledger-repository.ts';
import type { LedgerRow } from './ledger-repository.ts';
import { addUsage, usageRollUpModel } from './usage-repository.ts';

/** One tenant's account and usage held against its ledger, in one snapshot. */
interface CheckedBook extends BookComparison {
  /** As it is after the check, and after the repair where there was one. */
  book: Book;
}

export interface ReconciliationRepository {
  tenantsOf(shard: number): Promise<string[]>;
  /** Undefined: the tenant has no account. With `repair` what differs is set right in the same transaction. */
  check(tenantId: string, options: { repair: boolean; now: number }): Promise<CheckedBook | undefined>;
  /** Which of the requests the ledger knows. */
  booked(requestIds: readonly string[]): Promise<Set<string>>;
  /** Raises the account's version above `version`, so that Redis takes the book of this database again. */
  supersede(tenantId: string, version: number): Promise<Book>;
}

const DAY_MS = BUCKET_MS['1d'];
const startOfDay = (field: string) => ({ $subtract: [field, { $mod: [field, DAY_MS] }] });
const REBUILD_BATCH = 500;

function toBooked(row: LedgerRow): BookedRequest | undefined {
  const { tenantId, keyId, tier, mode, endpoint, acceptedAt, entityId } = row;
  if (keyId === undefined || tier === undefined || mode === undefined || endpoint === undefined) return undefined;
  if (acceptedAt === undefined) return undefined;
  return {
    ...{ tenantId, keyId, tier, mode, endpoint, acceptedAt },
    ...(entityId === undefined ? {} : { entityId }),
    promptTokens: row.promptTokens ?? 0,
    completionTokens: row.completionTokens ?? 0,
    costMicro: 0 - row.amountMicro,
    estimated: row.estimated ?? false,
  };
}

export function createReconciliationRepository(connection: Connection): ReconciliationRepository {
  const accounts = accountModel(connection);
  const ledgerRows = ledgerModel(connection);
  const usageRollUps = usageRollUpModel(connection);
  const tenants = tenantModel(connection);

  async function ledgerGroups(tenantId: string, session: ClientSession): Promise<LedgerGroup[]> {
    const groups = await ledgerRows
      .aggregate<
        UsageCounts & { _id: Pick<LedgerGroup, 'type' | 'mode'> & { dayMs?: number | null }; amountMicro: number }
      >([
        { $match: { tenantId } },
        {
          $group: {
            _id: { type: '$type', mode: '$mode', dayMs: startOfDay('$acceptedAt') },
            amountMicro: { $sum: '$amountMicro' },
            requests: { $sum: 1 },
            promptTokens: { $sum: '$promptTokens' },
            completionTokens: { $sum: '$completionTokens' },
            estimatedRequests: { $sum: { $cond: ['$estimated', 1, 0] } },
          },
        },
      ])
      .session(session);
    return groups.map(({ _id: { type, mode, dayMs }, ...sums }) => ({
      ...sums,
      ...{ type, mode, dayMs: dayMs ?? undefined },
      costMicro: 0 - sums.amountMicro,
    }));
  }

  async function rollUpGroups(tenantId: string, session: ClientSession): Promise<RollUpGroup[]> {
    const groups = await usageRollUps
      .aggregate<UsageCounts & { _id: Pick<RollUpGroup, 'width' | 'scope' | 'dayMs'> }>([
        { $match: { tenantId } },
        {
          $group: {
            _id: { width: '$width', scope: '$scope', dayMs: startOfDay('$startMs') },
            requests: { $sum: '$requests' },
            promptTokens: { $sum: '$promptTokens' },
            completionTokens: { $sum: '$completionTokens' },
            costMicro: { $sum: '$costMicro' },
            estimatedRequests: { $sum: '$estimatedRequests' },
          },
        },
      ])
      .session(session);
    return groups.map(({ _id, ...sums }) => ({ ..._id, ...sums }));
  }

  async function rebuildDay(tenantId: string, dayMs: number, session: ClientSession): Promise<void> {
    const during = { $gte: dayMs, $lt: dayMs + DAY_MS };
    await usageRollUps.deleteMany({ tenantId, startMs: during }, { session });
    const rows = await ledgerRows.find({ tenantId, type: 'usage', acceptedAt: during }, null, { session }).lean();
    const booked = rows.map(toBooked).filter((row) => row !== undefined);
    for (let from = 0; from < booked.length; from += REBUILD_BATCH)
      await addUsage(usageRollUps, booked.slice(from, from + REBUILD_BATCH), session);
  }

  async function setAccount(
    tenantId: string,
    correct: BookComparison['correct'],
    session: ClientSession,
  ): Promise<Book> {
    const row = await accounts
      .findOneAndUpdate(
        { _id: tenantId },
        { $set: { ...correct }, $inc: { version: 1 } },
        { session, returnDocument: 'after' },
      )
      .lean();
    if (row === null) throw new Error(`Tenant ${tenantId} has no account`);
    return toBook(row);
  }

  return {
    async tenantsOf(shard) {
      const rows = await tenants.find({ shard }, { _id: 1 }).lean();
      return rows.map((row) => row._id);
    },

    check: (tenantId, { repair, now }) =>
      connection.transaction(async (session) => {
        const account = await accounts.findById(tenantId, null, { session }).lean();
        if (account === null) return undefined;
        const [ledger, rollUps] = [await ledgerGroups(tenantId, session), await rollUpGroups(tenantId, session)];
        const comparison = compareBook(ledger, account, rollUps, now);
        if (!repair) return { ...comparison, book: toBook(account) };
        for (const dayMs of comparison.wrongDaysMs) await rebuildDay(tenantId, dayMs, session);
        const isWrong = comparison.balanceDriftMicro + comparison.budgetDriftTokens > 0;
        const book = isWrong ? await setAccount(tenantId, comparison.correct, session) : toBook(account);
        return { ...comparison, book };
      }),

    async booked(requestIds) {
      const rows = await ledgerRows.find({ _id: { $in: requestIds.map(ledgerIdOf) } }, { requestId: 1 }).lean();
      return new Set(rows.flatMap((row) => row.requestId ?? []));
    },

    async supersede(tenantId, version) {
      const row = await accounts
        .findOneAndUpdate({ _id: tenantId }, { $max: { version: version + 1 } }, { returnDocument: 'after' })
        .lean();
      if (row === null) throw new Error(`Tenant ${tenantId} has no account`);
      return toBook(row);
    },
  };
}
