import { createBatchRepository } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchRepository } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import { connectMongo } from '../../../shared/infra/mongo/connection.ts';
import type { MongoConnection } from '../../../shared/infra/mongo/connection.ts';
import type { Closer } from '../../../shared/lifecycle/closer.ts';

/** For a call that moves megabytes: a group of lines that is stored, ten thousand that are taken away. */
const BULK_CALL_MS = 10_000;

/**
 * Batches as the ingress uses them: over its own connection what is small, and over another what takes its time, as the
 * driver knows one time limit a connection.
 */
export async function openBatches(
  mongodbUri: string,
  mongo: MongoConnection,
  closer: Closer,
): Promise<BatchRepository> {
  const bulk = await connectMongo(mongodbUri, { callTimeoutMs: BULK_CALL_MS });
  closer.defer('mongo for batches', () => bulk.close());
  return createBatchRepository(mongo, bulk);
}
