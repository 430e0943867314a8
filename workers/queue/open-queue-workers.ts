import type { Config } from '../../shared/config/settings.ts';
import type { QueueName } from '../../shared/contracts/jobs.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { MongoPath } from '../mongo-path.ts';
import type { Capacities } from '../pipeline/capacities.ts';
import type { RunPipeline } from '../pipeline/run-pipeline.ts';
import { createBatchConcurrency } from './batch-concurrency.ts';
import { createInferenceWorker } from './inference.ts';
import type { InferenceWorker } from './inference.ts';
import type { ClaimSettings } from './job-source.ts';

export interface QueueWorkersDeps {
  config: Pick<Config, 'worker' | 'queue'>;
  redis: RedisClient;
  keyspace: Keyspace;
  queues: ChatQueues;
  runPipeline: RunPipeline;
  capacities: Capacities;
  claims: ClaimSettings;
  workerId: string;
  onLockLost: (requestId: string) => void;
  path: MongoPath;
  closer: Closer;
  log: Logger;
}

/** Opens the workers of a shard's queues of chat requests. */
export type OpenQueueWorkers = (shard: number) => InferenceWorker[];

/** Shards are added while the process runs; its interactive concurrency is divided among all of them. */
export function createOpenQueueWorkers(deps: QueueWorkersDeps): OpenQueueWorkers {
  const { redis, keyspace, queues, runPipeline, capacities, claims, workerId, onLockLost, path, log } = deps;
  const { concurrency, batchConcurrency: batchPlaces } = deps.config.worker;
  const interactives: InferenceWorker[] = [];
  const batchConcurrency = createBatchConcurrency({ max: batchPlaces });
  deps.closer.defer('batch concurrency', () => {
    batchConcurrency.stop();
  });

  const open = (shard: number, queueName: QueueName, places: number) =>
    createInferenceWorker({
      client: redis,
      keyspace,
      shard,
      concurrency: places,
      queueName,
      queue: queues.queue(shard, queueName),
      runPipeline,
      room: capacities.roomOf(queueName),
      claims,
      workerId,
      completedKept: deps.config.queue.completedKept,
      onLockLost,
      path,
      log,
    });

  return (shard) => {
    const interactive = open(shard, 'interactive', concurrency);
    interactives.push(interactive);
    const places = Math.max(1, Math.floor(concurrency / interactives.length));
    for (const each of interactives) each.concurrency = places;
    const batch = open(shard, 'batch', batchPlaces);
    batchConcurrency.add({ interactive, batch });
    return [interactive, batch];
  };
}
