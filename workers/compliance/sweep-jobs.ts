import type { ComplianceJobRepository } from '../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceQueue } from '../../shared/infra/queue/compliance-queue.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface SweepJobsDeps {
  jobs: Pick<ComplianceJobRepository, 'due'>;
  queue: Pick<ComplianceQueue, 'add'>;
  leases: Pick<LeaderLease, 'hold'>;
  clock: Clock;
}

/** The shard whose lease stands for the whole fleet: these jobs belong to none. */
const FLEET_SHARD = 0;
const TASK = 'compliance';
const JOBS_MAX = 200;

/**
 * Queues exports and deletions that nobody has in hand: whose worker has died, whose next try has come, and what Redis
 * has lost. One process of the fleet does so.
 */
export function createSweepJobs({ jobs, queue, leases, clock }: SweepJobsDeps): () => Promise<void> {
  return async () => {
    if (!(await leases.hold(FLEET_SHARD, TASK))) return;
    const due = await jobs.due(clock.now(), JOBS_MAX);
    await Promise.all(due.map((job) => queue.add(job)));
  };
}
