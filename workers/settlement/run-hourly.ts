import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { WorkerMetrics } from '../../shared/infra/metrics/registry.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { LastDrift } from '../../shared/infra/redis/accounts/last-drift.ts';
import type { Outbox } from '../../shared/infra/redis/requests/outbox.ts';
import { isDrifting } from './reconcile.ts';
import type { Drift, Reconciler } from './reconcile.ts';

export interface ReconcileHourlyDeps {
  reconciler: Reconciler;
  leases: LeaderLease;
  /** Dead letters get another try with every turn. */
  outbox: Pick<Outbox, 'requeue'>;
  drift: LastDrift;
  metrics: Pick<WorkerMetrics, 'ledgerDrift' | 'driftRepaired' | 'reconcileFailures'>;
  log: Logger;
}

/** Reconciles a shard if the fleet has not done so within the hour; cheap otherwise. */
export type ReconcileHourly = (shard: number) => Promise<void>;

const TASK = 'reconcile';
const EVERY_MS = 3_600_000;

export function createReconcileHourly({
  reconciler,
  leases,
  outbox,
  drift,
  metrics,
  log,
}: ReconcileHourlyDeps): ReconcileHourly {
  function report(shard: number, found: Drift, left: Drift): void {
    for (const part of Object.keys(left) as (keyof Drift)[]) {
      metrics.ledgerDrift.set({ shard: String(shard), part }, left[part]);
      if (found[part] > left[part]) metrics.driftRepaired.inc({ part }, found[part] - left[part]);
    }
    if (isDrifting(found)) log.error('Reconciliation found drift and repaired it.', { shard, drift: { ...found } });
    if (isDrifting(left)) log.error('Reconciliation left drift; it needs an operator.', { shard, drift: { ...left } });
  }

  return async (shard) => {
    if (!(await leases.takeTurn(shard, TASK, EVERY_MS))) return;
    const { requeued, left: unreadable } = await outbox.requeue(shard);
    if (requeued + unreadable > 0) log.warn('Dead letters are tried again.', { shard, count: requeued + unreadable });
    // A turn that fails is over as well: what is too much for one run must not be begun again every half a minute.
    const { found, left, failed } = await reconciler.reconcileShard(shard, { repair: true });
    metrics.reconcileFailures.inc(failed);
    report(shard, found, left);
    await drift.keep(shard, { ...left });
  };
}
