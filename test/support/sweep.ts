import { createLeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { createSweep } from '../../workers/settlement/sweep.ts';
import type { Sweep, SweepDeps } from '../../workers/settlement/sweep.ts';
import { createRecordingLog } from './recording-log.ts';
import { RETENTION_MS } from './request-lab.ts';
import type { RequestLab } from './request-lab.ts';

/** A process's sweep over the requests of a lab, which knows of no request beside Redis. */
export function sweepOf(
  lab: RequestLab,
  processId: string,
  deps: Pick<SweepDeps, 'hasReconnectedRecently' | 'isExhausted' | 'runPipeline'>,
): Sweep {
  return createSweep({
    inflight: lab.inflight,
    admissions: lab.admissions,
    requests: lab.requests,
    retentionMs: RETENTION_MS,
    recoverLost: { round: () => Promise.resolve(), makeDue: () => Promise.resolve(false) },
    leases: createLeaderLease(lab.redis, lab.keyspace, processId),
    log: createRecordingLog(),
    ...deps,
  });
}
