import { Queue } from 'bullmq';

import { COMPLIANCE_QUEUE } from '../../contracts/jobs.ts';
import type { ComplianceJob } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';

/** Says that an export or a deletion has something to do; what, and how far it is, stands in MongoDB. */
export interface ComplianceQueue {
  /** Does nothing where it is queued already. */
  add(job: ComplianceJob): Promise<void>;
  close(): Promise<void>;
}

export const COMPLIANCE_QUEUE_NAME = 'compliance';

/** `client` must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
export function createComplianceQueue(
  client: RedisClient,
  keyspace: Keyspace,
  onError: (error: Error) => void,
): ComplianceQueue {
  const queue = new Queue<ComplianceJob>(COMPLIANCE_QUEUE_NAME, {
    connection: client,
    prefix: keyspace.compliance,
    streams: { events: { maxLen: 100 } },
  });
  queue.on('error', onError);
  return {
    async add(job) {
      await queue.add('run', job, { jobId: job.jobId, ...COMPLIANCE_QUEUE });
    },
    close: () => queue.close(),
  };
}
