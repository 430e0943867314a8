import { createPseudonyms } from '../../../shared/domain/compliance/pseudonyms.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { MongoConnection } from '../../../shared/infra/mongo/connection.ts';
import { createComplianceJobRepository } from '../../../shared/infra/mongo/compliance/compliance-job-repository.ts';
import { createExportArchiveRepository } from '../../../shared/infra/mongo/compliance/export-archive-repository.ts';
import { createComplianceQueue } from '../../../shared/infra/queue/compliance-queue.ts';
import type { RedisClient } from '../../../shared/infra/redis/connection.ts';
import type { Keyspace } from '../../../shared/infra/redis/keyspace.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';
import type { ComplianceParts } from './compliance-jobs.ts';

export interface OpenComplianceDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  credentialsKey: Buffer;
  closer: Closer;
  log: Logger;
}

/** What the ingress needs of exports and deletions; workers do them. */
export function openCompliance(deps: OpenComplianceDeps): ComplianceParts {
  const { mongo, redis, keyspace, credentialsKey, closer, log } = deps;
  const queue = createComplianceQueue(redis, keyspace, (error) => {
    log.warn('The queue of exports and deletions reported an error.', { error });
  });
  closer.defer('compliance queue', () => queue.close());
  return {
    jobs: createComplianceJobRepository(mongo),
    archives: createExportArchiveRepository(mongo),
    queue,
    pseudonyms: createPseudonyms(credentialsKey),
  };
}
