import type { Connection } from 'mongoose';

import { addGroups, compareAccount, compareDay, daysOf, usageOfDay } from '../../domain/compare-ledger.ts';
import type { AccountComparison, OnDrift } from '../../domain/compare-ledger.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';
import { accountModel, toLedgerBalance } from './account-repository.ts';
import type { LedgerBalance } from './account-repository.ts';
import { createLedgerCheckpoints, NO_CHECKPOINT, createLedgerSums } from './ledger-audit.ts';
import type { LedgerCheckpoint, LedgerCheckpoints, LedgerSums } from './ledger-audit.ts';
import { createRebuildUsage } from './rebuild-usage.ts';
import { ledgerIdOf, ledgerModel } from './ledger-repository.ts';

interface CheckedAccount extends Omit<AccountComparison, 'correct'> {
  usageDriftTokens: number;
  /** After the check, and the repair where there was one. */
  book: LedgerBalance;
}

interface CheckOptions {
  /** `repair` also moves the tenant's checkpoint; `report` writes nothing. */
  onDrift: OnDrift;
  /** Ignores the checkpoint: adds up the whole ledger and looks at every day. */
  full?: boolean;
  now: number;
}

export type ReconciliationRepository = ReturnType<typeof createReconciliationRepository>;

const TENANTS_AT_ONCE = 500;
const ENTRIES_AT_ONCE = 10_000;

interface Found {
  comparison: AccountComparison;
  usageDriftTokens: number;
  /** Days to rebuild, each with its number of requests. */
  wrongDays: Map<number, number>;
  book: LedgerBalance;
}

const hasDrift = ({ comparison: { balanceDriftMicro, budgetDriftTokens }, usageDriftTokens }: Found) =>
  balanceDriftMicro + budgetDriftTokens + usageDriftTokens > 0;

/** Adds later bookings to a checkpoint, a slice at a time; a slice that is kept is not read again. */
function createCatchUp(connection: Connection, sums: LedgerSums, checkpoints: LedgerCheckpoints) {
  const accounts = accountModel(connection);
  return async (tenantId: string, start: LedgerCheckpoint, keep: boolean): Promise<LedgerCheckpoint> => {
    let isKept = keep;
    for (let at = start; ;) {
      const account = await accounts.findById(tenantId, { lastEntryAt: 1 }).lean();
      // Later entries get later times, so the ledger up to here is final.
      const closedMs = account?.lastEntryAt ?? at.throughMs;
      const sliceEndMs = await sums.endOfSlice(tenantId, at.throughMs, ENTRIES_AT_ONCE);
      const throughMs = Math.min(closedMs, sliceEndMs ?? closedMs);
      if (throughMs <= at.throughMs) return at;
      const groups = await sums.groups(tenantId, { afterMs: at.throughMs, throughMs });
      const next = {
        throughMs,
        groups: addGroups(at.groups, groups),
        uncheckedDaysMs: [...new Set([...at.uncheckedDaysMs, ...daysOf(groups)])],
      };
      // If another process moves the checkpoint too, the sums are still right.
      isKept &&= await checkpoints.advance(tenantId, at.throughMs, next);
      at = next;
      if (sliceEndMs === undefined) return at;
    }
  };
}

/** A day's roll-ups against the ledger, in one snapshot. */
function compareDayIn(
  connection: Connection,
  sums: LedgerSums,
  tenantId: string,
  dayMs: number,
  { throughMs, groups }: LedgerCheckpoint,
  now: number,
) {
  return connection.transaction(async (session) => {
    const all = addGroups(groups, await sums.groups(tenantId, { afterMs: throughMs }, session));
    const counts = usageOfDay(all, dayMs);
    const requests = counts?.requests ?? 0;
    const rollUps = await sums.rollUps(tenantId, dayMs, requests, session);
    return { driftTokens: compareDay(dayMs, counts, rollUps, now), requests };
  });
}

function createComparison(connection: Connection, sums: LedgerSums) {
  const accounts = accountModel(connection);

  /** The account against the ledger, in one snapshot. */
  const compareIn = (tenantId: string, { throughMs, groups }: LedgerCheckpoint, { onDrift }: { onDrift: OnDrift }) =>
    connection.transaction(async (session) => {
      const account = await accounts.findById(tenantId, null, { session }).lean();
      if (account === null) return undefined;
      const all = addGroups(groups, await sums.groups(tenantId, { afterMs: throughMs }, session));
      const comparison = compareAccount(all, account);
      const isWrong = comparison.balanceDriftMicro + comparison.budgetDriftTokens > 0;
      if (onDrift === 'report' || !isWrong) return { comparison, book: toLedgerBalance(account) };
      const row = await accounts
        .findOneAndUpdate(
          { _id: tenantId },
          { $set: { ...comparison.correct }, $inc: { version: 1 } },
          { session, returnDocument: 'after' },
        )
        .lean();
      return { comparison, book: toLedgerBalance(row ?? account) };
    });

  async function look(
    tenantId: string,
    checkpoint: LedgerCheckpoint,
    daysMs: Iterable<number>,
    now: number,
  ): Promise<Found | undefined> {
    const compared = await compareIn(tenantId, checkpoint, { onDrift: 'report' });
    if (compared === undefined) return undefined;
    const wrongDays = new Map<number, number>();
    let usageDriftTokens = 0;
    for (const dayMs of daysMs) {
      const { driftTokens, requests } = await compareDayIn(connection, sums, tenantId, dayMs, checkpoint, now);
      usageDriftTokens += driftTokens;
      if (driftTokens > 0) wrongDays.set(dayMs, requests);
    }
    return { ...compared, usageDriftTokens, wrongDays };
  }

  return { compareIn, look };
}

async function* tenantsOf(tenants: ReturnType<typeof tenantModel>, shard: number): AsyncIterable<string[]> {
  for (let after = ''; ;) {
    const rows = await tenants
      .find({ shard, _id: { $gt: after } }, { _id: 1 })
      .sort({ _id: 1 })
      .limit(TENANTS_AT_ONCE)
      .lean();
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => row._id);
    after = last._id;
  }
}

export function createReconciliationRepository(connection: Connection) {
  const accounts = accountModel(connection);
  const ledger = ledgerModel(connection);
  const tenants = tenantModel(connection);
  const sums = createLedgerSums(connection);
  const checkpoints = createLedgerCheckpoints(connection);
  const rebuildUsage = createRebuildUsage(connection);
  const catchUp = createCatchUp(connection, sums, checkpoints);
  const { compareIn, look } = createComparison(connection, sums);

  /** `whole`: adds up the ledger from its beginning and looks at every day. */
  async function lookAt(tenantId: string, { onDrift, now }: CheckOptions, { whole }: { whole: boolean }) {
    const repairs = onDrift === 'repair';
    if (whole && repairs) await checkpoints.discard(tenantId);
    const stored = whole ? undefined : await checkpoints.read(tenantId);
    const checkpoint = await catchUp(tenantId, stored ?? NO_CHECKPOINT, repairs);
    const everyDay = stored === undefined ? await sums.rolledUpDays(tenantId) : [];
    const daysMs = [...new Set([...checkpoint.uncheckedDaysMs, ...everyDay])].sort((a, b) => a - b);
    const found = await look(tenantId, checkpoint, daysMs, now);
    return found === undefined ? undefined : { found, checkpoint, isWhole: stored === undefined };
  }

  async function repairAll(tenantId: string, { found, checkpoint }: { found: Found; checkpoint: LedgerCheckpoint }) {
    for (const [dayMs, requests] of found.wrongDays) await rebuildUsage(tenantId, dayMs, requests);
    // Days that agree are checked again when requests are added to them.
    const uncheckedDaysMs = [...found.wrongDays.keys()];
    if (uncheckedDaysMs.length < checkpoint.uncheckedDaysMs.length)
      await checkpoints.advance(tenantId, checkpoint.throughMs, { ...checkpoint, uncheckedDaysMs });
    const { balanceDriftMicro, budgetDriftTokens } = found.comparison;
    if (balanceDriftMicro + budgetDriftTokens === 0) return found.book;
    return (await compareIn(tenantId, checkpoint, { onDrift: 'repair' }))?.book ?? found.book;
  }

  return {
    tenantsOf: (shard: number): AsyncIterable<string[]> => tenantsOf(tenants, shard),

    async check(tenantId: string, options: CheckOptions): Promise<CheckedAccount | undefined> {
      let looked = await lookAt(tenantId, options, { whole: options.full === true });
      // The whole ledger must confirm a difference from a checkpoint's sums.
      if (looked !== undefined && hasDrift(looked.found) && !looked.isWhole)
        looked = await lookAt(tenantId, options, { whole: true });
      if (looked === undefined) return undefined;
      const book = options.onDrift === 'repair' ? await repairAll(tenantId, looked) : looked.found.book;
      const { comparison, usageDriftTokens } = looked.found;
      const { balanceDriftMicro, budgetDriftTokens } = comparison;
      return { balanceDriftMicro, budgetDriftTokens, usageDriftTokens, book };
    },

    async booked(requestIds: readonly string[]): Promise<Set<string>> {
      const rows = await ledger.find({ _id: { $in: requestIds.map(ledgerIdOf) } }, { requestId: 1 }).lean();
      return new Set(rows.flatMap((row) => row.requestId ?? []));
    },

    async book(tenantId: string): Promise<LedgerBalance> {
      const row = await accounts.findById(tenantId).lean();
      if (row === null) throw new Error(`Tenant ${tenantId} has no account`);
      return toLedgerBalance(row);
    },

    /** Raises the account's version above `version`, so that Redis takes the balance of this database again. */
    async supersede(tenantId: string, version: number): Promise<LedgerBalance> {
      const row = await accounts
        .findOneAndUpdate({ _id: tenantId }, { $max: { version: version + 1 } }, { returnDocument: 'after' })
        .lean();
      if (row === null) throw new Error(`Tenant ${tenantId} has no account`);
      return toLedgerBalance(row);
    },
  };
}
