import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { WorkerMetrics } from '../../shared/infra/metrics/registry.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import { isDrifting } from './reconcile.ts';
import type { Drift, Reconciler } from './reconcile.ts';

export interface ReconcileHourlyDeps {
  reconciler: Reconciler;
  leases: LeaderLease;
  metrics: Pick<WorkerMetrics, 'ledgerDrift' | 'driftRepaired'>;
  log: Logger;
}

/** Reconciles a shard if the fleet has not done so within the hour; cheap otherwise. */
export type ReconcileHourly = (shard: number) => Promise<void>;

const TASK = 'reconcile';
const EVERY_MS = 3_600_000;

export function createReconcileHourly({ reconciler, leases, metrics, log }: ReconcileHourlyDeps): ReconcileHourly {
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
    try {
      const { found, left } = await reconciler.reconcileShard(shard, { repair: true });
      report(shard, found, left);
    } catch (error) {
      await leases.release(shard, TASK);
      throw error;
    }
  };
}
