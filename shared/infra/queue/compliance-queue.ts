import type { ComplianceJob } from '../../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { openQueue } from './open-queue.ts';

/** Says that an export or a deletion has something to do; what, and how far it is, stands in MongoDB. */
export interface ComplianceQueue {
  /** Does nothing where it is queued already. */
  add(job: ComplianceJob): Promise<void>;
  close(): Promise<void>;
}

/** `client` must be ready: a queue on one that is not ends the process (docs/architecture/facts.md section 5). */
export function createComplianceQueue(
  client: RedisClient,
  keyspace: Keyspace,
  onError: (error: Error) => void,
): ComplianceQueue {
  const queue = openQueue('compliance', { client, prefix: keyspace.compliance, onError });
  return { add: (job) => queue.add(job.jobId, job), close: () => queue.close() };
}
