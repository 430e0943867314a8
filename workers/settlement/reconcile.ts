import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { ReconciliationRepository } from '../../shared/infra/mongo/accounts/reconciliation-repository.ts';
import type { AccountAudit, AuditedAccount } from '../../shared/infra/redis/accounts/account-audit.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';

export interface ReconcileDeps {
  books: ReconciliationRepository;
  audit: AccountAudit;
  accounts: AccountStore;
  clock: Clock;
  log: Logger;
}

/**
 * What disagreed, as absolute sums over the tenants; micro-credits where the name does not say tokens or requests. All
 * 0: ledger, account, usage and Redis say the same.
 */
export interface Drift {
  /** Account against the sum of the ledger. */
  balance: number;
  /** Tokens by month against the ledger. */
  budgetTokens: number;
  /** Usage roll-ups against the ledger. */
  usageTokens: number;
  /** The book in Redis against MongoDB's of the same version. */
  cachedBook: number;
  /** Sums of holds and pending charges in Redis against the single requests. */
  held: number;
  pending: number;
  /** Finished requests whose charge is neither in the ledger nor on its way there. */
  lostRequests: number;
}

interface Reconciled {
  tenants: number;
  found: Drift;
  /** What is still wrong after the repair; the same as `found` where nothing was to be repaired. */
  left: Drift;
}

export interface Reconciler {
  /** Safe to repeat and to run beside everything else. */
  reconcileShard(shard: number, options: { repair: boolean }): Promise<Reconciled>;
}

/** One call of the script answers for so many tenants. */
const TENANTS_AT_ONCE = 50;

export function noDrift(): Drift {
  return { balance: 0, budgetTokens: 0, usageTokens: 0, cachedBook: 0, held: 0, pending: 0, lostRequests: 0 };
}

export function isDrifting(drift: Drift): boolean {
  return Object.values(drift).some((amount) => amount !== 0);
}

function addDrift(sum: Drift, more: Drift): void {
  for (const name of Object.keys(more) as (keyof Drift)[]) sum[name] += more[name];
}

/** Compares what Redis and the accounts say with the ledger, which alone is right, and repairs the difference. */
export function createReconciler({ books, audit, accounts, clock, log }: ReconcileDeps): Reconciler {
  /**
   * Charges that Redis counts as pending. The order of reading matters: a charge moves from the outbox to the ledger,
   * so one that is in neither, read in this order, is lost.
   */
  async function settlePending(shard: number, tenantId: string, repair: boolean) {
    const ids = await audit.pendingIds(shard, tenantId);
    if (ids.length === 0) return { booked: [], lost: [] };
    const waiting = await audit.waiting(shard);
    const known = await books.booked(ids);
    const lost: string[] = [];
    for (const id of ids) {
      // While there is a record, the worker that finished the request may bring its settlement again.
      if (!known.has(id) && !waiting.has(id) && !(await audit.hasRecord(shard, id))) lost.push(id);
    }
    for (const requestId of lost) {
      log.error('The settlement of a finished request is lost; its charge is dropped.', { shard, tenantId, requestId });
    }
    return { booked: [...known, ...(repair ? lost : [])], lost };
  }

  async function checkTenant(shard: number, cached: AuditedAccount, repair: boolean): Promise<Drift> {
    const { tenantId, version } = cached;
    const drift = { ...noDrift(), held: cached.heldDriftMicro, pending: cached.pendingDriftMicro };
    const checked = await books.check(tenantId, { repair, now: clock.now() });
    if (checked === undefined) return drift;
    drift.balance = checked.balanceDriftMicro;
    drift.budgetTokens = checked.budgetDriftTokens;
    drift.usageTokens = checked.usageDriftTokens;
    let { book } = checked;
    // Redis was read first: it cannot rightly be ahead, and at the same version it must say the same.
    const isAhead = version !== undefined && version > book.version;
    if (isAhead || (version === book.version && drift.balance === 0))
      drift.cachedBook = Math.abs(cached.bookMicro - book.balanceMicro);
    if (repair && (isAhead || drift.cachedBook !== 0)) {
      book = await books.supersede(tenantId, Math.max(version ?? 0, book.version));
    }
    const { booked, lost } = await settlePending(shard, tenantId, repair);
    drift.lostRequests = lost.length;
    // An account that Redis has not loaded is loaded by its next admission.
    if (version !== undefined || booked.length > 0) await accounts.publishBook(shard, tenantId, book, booked);
    return drift;
  }

  async function pass(shard: number, tenantIds: readonly string[], repair: boolean): Promise<Drift> {
    const sum = noDrift();
    for (let from = 0; from < tenantIds.length; from += TENANTS_AT_ONCE) {
      const page = tenantIds.slice(from, from + TENANTS_AT_ONCE);
      for (const cached of await audit.recount(shard, page, { repair })) {
        const drift = await checkTenant(shard, cached, repair);
        if (isDrifting(drift))
          log.error('Money or usage drifted.', { shard, tenantId: cached.tenantId, drift: { ...drift } });
        addDrift(sum, drift);
      }
    }
    return sum;
  }

  return {
    async reconcileShard(shard, { repair }) {
      const tenantIds = await books.tenantsOf(shard);
      const found = await pass(shard, tenantIds, repair);
      const left = repair && isDrifting(found) ? await pass(shard, tenantIds, false) : found;
      return { tenants: tenantIds.length, found, left };
    },
  };
}

export interface ReconcileEvents {
  'ledger.reconciled': [shard: number, found: Drift, left: Drift];
}

export interface ReconcileHourlyDeps {
  reconciler: Reconciler;
  leases: LeaderLease;
  events: Emitter<ReconcileEvents>;
}

/** Reconciles a shard if no worker has done so within the hour; cheap otherwise. */
export type ReconcileHourly = (shard: number) => Promise<void>;

const TASK = 'reconcile';
const EVERY_MS = 3_600_000;

export function createReconcileHourly({ reconciler, leases, events }: ReconcileHourlyDeps): ReconcileHourly {
  return async (shard) => {
    if (!(await leases.takeTurn(shard, TASK, EVERY_MS))) return;
    try {
      const { found, left } = await reconciler.reconcileShard(shard, { repair: true });
      events.emit('ledger.reconciled', shard, found, left);
    } catch (error) {
      await leases.release(shard, TASK);
      throw error;
    }
  };
}
