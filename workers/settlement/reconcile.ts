import type { OnDrift } from '../../shared/domain/compare-ledger.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import type { AccountAudit, AuditedAccount, AccountStore, LastDrift } from '../../shared/redis/stores/account-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { Outbox } from '../../shared/requests/outbox.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';

export interface ReconcileDeps {
  books: ReconciliationRepository;
  audit: AccountAudit;
  accounts: AccountStore;
  clock: Clock;
  log: Logger;
}

/** Absolute sums over the tenants, in micro-credits unless the name says tokens or requests. All 0: the books agree. */
export interface Drift {
  /** Account against the sum of the ledger. */
  balance: number;
  /** Tokens by month against the ledger. */
  budgetTokens: number;
  /** Usage roll-ups against the ledger. */
  usageTokens: number;
  /** The ledger balance in Redis against that of the same version in MongoDB. */
  cachedBalance: number;
  /** Sums of holds and pending charges in Redis against those of the single requests. */
  held: number;
  pending: number;
  /** Finished requests whose charge is neither in the ledger nor on its way there. */
  lostRequests: number;
}

interface Reconciled {
  tenants: number;
  /** Tenants that could not be checked; the drift is that of the others. */
  failed: number;
  found: Drift;
  /** The drift that remains after the repair; equals `found` if drift is only reported. */
  left: Drift;
}

interface ReconcileOptions {
  /** Balances from MongoDB are published to Redis in either case. */
  onDrift: OnDrift;
  /** Adds up whole ledgers, not just what was booked since the last time. */
  full?: boolean;
}

export type Reconciler = ReturnType<typeof createReconciler>;

const TENANTS_AT_ONCE = 50;
/** A shard is left until its next turn after this many failures in a row, which cannot be due to its tenants. */
const FAILURES_IN_A_ROW_MAX = 10;
/** While more records than this wait, nothing counts as lost, because most pending charges are among them. */
const OUTBOX_READ_MAX = 20_000;

export function noDrift(): Drift {
  return { balance: 0, budgetTokens: 0, usageTokens: 0, cachedBalance: 0, held: 0, pending: 0, lostRequests: 0 };
}

export function isDrifting(drift: Drift): boolean {
  return Object.values(drift).some((amount) => amount !== 0);
}

function addDrift(sum: Drift, more: Drift): void {
  for (const name of Object.keys(more) as (keyof Drift)[]) sum[name] += more[name];
}

/**
 * Finds lost charges. The order of reading matters: a charge moves from the outbox to the ledger, so one found in
 * neither, when read in this order, is lost.
 */
async function lostOf(
  { audit, books }: ReconcileDeps,
  shard: number,
  unknown: readonly string[],
): Promise<{ lost: string[]; booked: string[] }> {
  const none = { lost: [], booked: [] };
  // While there is a request record, the worker that finished the request may still replay its settlement.
  const withoutRecord = await audit.withoutRecord(shard, unknown);
  if (withoutRecord.length === 0 || (await audit.waiting(shard)) > OUTBOX_READ_MAX) return none;
  const missing = await audit.notWaiting(shard, withoutRecord);
  if (missing.length === 0) return none;
  const booked = await books.booked(missing);
  return { lost: missing.filter((id) => !booked.has(id)), booked: [...booked] };
}

/** Checks the charges that Redis counts as pending, page by page; those already in the ledger stop being pending. */
async function settlePending(deps: ReconcileDeps, shard: number, tenantId: string, onDrift: OnDrift): Promise<number> {
  const { books, audit, accounts, log } = deps;
  let lostRequests = 0;
  for await (const ids of audit.pendingIds(shard, tenantId)) {
    const known = await books.booked(ids);
    const { lost, booked } = await lostOf(
      deps,
      shard,
      ids.filter((id) => !known.has(id)),
    );
    for (const requestId of lost)
      log.error('The settlement of a finished request is lost; its charge is dropped.', { shard, tenantId, requestId });
    lostRequests += lost.length;
    const settled = [...known, ...booked, ...(onDrift === 'repair' ? lost : [])];
    // Read now: some charges may have been booked since the comparison, and not yet published.
    if (settled.length > 0) await accounts.publishBalance(shard, tenantId, await books.book(tenantId), settled);
  }
  return lostRequests;
}

async function checkTenant(
  deps: ReconcileDeps,
  shard: number,
  cached: AuditedAccount,
  options: ReconcileOptions,
): Promise<Drift> {
  const { books, accounts, clock } = deps;
  const { tenantId, version } = cached;
  const { onDrift } = options;
  const drift = { ...noDrift(), held: cached.heldDriftMicro, pending: cached.pendingDriftMicro };
  const checked = await books.check(tenantId, { ...options, now: clock.now() });
  if (checked === undefined) return drift;
  drift.balance = checked.balanceDriftMicro;
  drift.budgetTokens = checked.budgetDriftTokens;
  drift.usageTokens = checked.usageDriftTokens;
  let { book } = checked;
  // Redis was read first, so it must not be ahead, and at the same version both must agree.
  const isAhead = version !== undefined && version > book.version;
  if (isAhead || (version === book.version && drift.balance === 0))
    drift.cachedBalance = Math.abs(cached.ledgerMicro - book.balanceMicro);
  if (onDrift === 'repair' && (isAhead || drift.cachedBalance !== 0)) {
    book = await books.supersede(tenantId, Math.max(version ?? 0, book.version));
  }
  // An account that Redis has not loaded is loaded by its next admission.
  if (version !== undefined) await accounts.publishBalance(shard, tenantId, book);
  drift.lostRequests = await settlePending(deps, shard, tenantId, onDrift);
  return drift;
}

async function reconcileTenant(
  deps: ReconcileDeps,
  shard: number,
  cached: AuditedAccount,
  options: ReconcileOptions,
): Promise<{ found: Drift; left: Drift }> {
  const { audit, log } = deps;
  const { tenantId } = cached;
  const found = await checkTenant(deps, shard, cached, options);
  if (!isDrifting(found)) return { found, left: found };
  log.error('Money or usage drifted.', { shard, tenantId, drift: { ...found } });
  if (options.onDrift === 'report') return { found, left: found };
  const [again] = await audit.recount(shard, [tenantId], { onDrift: 'report' });
  const left = again === undefined ? found : await checkTenant(deps, shard, again, { ...options, onDrift: 'report' });
  if (isDrifting(left)) log.error('Drift is left after a repair.', { shard, tenantId, drift: { ...left } });
  return { found, left };
}

/** Compares Redis and the accounts with the ledger, which is authoritative, and repairs differences. */
export function createReconciler(deps: ReconcileDeps) {
  const { books, audit, log } = deps;

  async function* accountsOf(shard: number, onDrift: OnDrift): AsyncGenerator<AuditedAccount> {
    for await (const tenantIds of books.tenantsOf(shard)) {
      for (let from = 0; from < tenantIds.length; from += TENANTS_AT_ONCE)
        yield* await audit.recount(shard, tenantIds.slice(from, from + TENANTS_AT_ONCE), { onDrift });
    }
  }

  return {
    /** Safe to repeat and to run alongside everything else. Rejects if a store fails for too many tenants in a row. */
    async reconcileShard(shard: number, options: ReconcileOptions): Promise<Reconciled> {
      const done: Reconciled = { tenants: 0, failed: 0, found: noDrift(), left: noDrift() };
      let failuresInARow = 0;
      for await (const cached of accountsOf(shard, options.onDrift)) {
        done.tenants += 1;
        try {
          const { found, left } = await reconcileTenant(deps, shard, cached, options);
          addDrift(done.found, found);
          addDrift(done.left, left);
          failuresInARow = 0;
        } catch (error) {
          done.failed += 1;
          failuresInARow += 1;
          log.error('A tenant could not be reconciled.', { shard, tenantId: cached.tenantId, error });
          if (failuresInARow >= FAILURES_IN_A_ROW_MAX) throw error;
        }
      }
      return done;
    },
  };
}

export interface ReconcileEvents {
  'ledger.reconciled': [shard: number, done: Reconciled];
  /** The drift left by the shard's last reconciliation, by part, whichever worker ran it. */
  'ledger.drift': [shard: number, left: Readonly<Record<string, number>>];
}

export interface ReconcileHourlyDeps {
  reconciler: Reconciler;
  leases: LeaderLease;
  /** Dead letters get another try with every turn. */
  outbox: Outbox;
  drift: LastDrift;
  events: Emitter<ReconcileEvents>;
  log: Logger;
}

/** Reconciles a shard if no worker has done so within the hour; cheap otherwise. */
export type ReconcileHourly = (shard: number) => Promise<void>;

const TASK = 'reconcile';
const EVERY_MS = 3_600_000;

export function createReconcileHourly(deps: ReconcileHourlyDeps): ReconcileHourly {
  const { reconciler, leases, outbox, drift, events, log } = deps;
  return async (shard) => {
    if (!(await leases.takeTurn(shard, TASK, EVERY_MS))) {
      // Turns pass from worker to worker: a worker that once saw drift would show it forever, and a new one none.
      events.emit('ledger.drift', shard, (await drift.read(shard)) ?? {});
      return;
    }
    const { requeued } = await outbox.requeue(shard);
    if (requeued > 0) log.warn('Dead letters are tried again.', { shard, count: requeued });
    // A failed turn counts as done, so that a run that is too much for one turn is not restarted every half minute.
    const done = await reconciler.reconcileShard(shard, { onDrift: 'repair' });
    events.emit('ledger.reconciled', shard, done);
    events.emit('ledger.drift', shard, { ...done.left });
    await drift.keep(shard, { ...done.left });
  };
}
