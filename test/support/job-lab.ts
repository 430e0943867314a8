import { createChatQueues } from '../../shared/queue/queues.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import type { QueueRoom } from '../../workers/pipeline/capacities.ts';
import type { JobStore, TakenJob } from '../../workers/queue/job-source.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import { createJobStore } from '../../workers/queue/job-source.ts';
import { createQueueOrderStore } from '../../shared/requests/body-store.ts';
import { LEASE_MS, openRequestLab, REQUEST_TIMEOUT_MS, SHARD } from './request-lab.ts';
import type { LabRequest, RequestLab } from './request-lab.ts';

export const LOCK_MS = 10_000;

/** For queues whose providers are never full. */
export const BOUNDLESS: QueueRoom = {
  look: (most) => Promise.resolve({ most, limiting: [], closed: [] }),
  took: () => undefined,
  placed: () => undefined,
  changed: () => new Promise(() => undefined),
};

/** A request lab whose requests are queued, and the store that takes them. */
export interface JobLab extends RequestLab {
  queue: ReturnType<ChatQueues['queue']>;
  jobs: JobStore;
  /** Whether `jobs` may claim. */
  mayClaim: boolean;
  /** Over another client. */
  jobsOver(client: RedisClient): JobStore;
  /** Admitted and queued: all of one tenant, in the order of acceptance. */
  queueUp(): Promise<LabRequest>;
  queueUpSome(count: number): Promise<string[]>;
  /** Throws where only BullMQ may hand out. */
  take(most: number): Promise<TakenJob[]>;
  recordOf(requestId: string): Promise<Record<string, string>>;
  hasMarker(): Promise<boolean>;
}

export async function openJobLab(): Promise<JobLab> {
  const lab = await openRequestLab();
  const { redis, keyspace, keys } = lab;
  const queues = createChatQueues(redis, keyspace, () => undefined);
  const queueOrder = createQueueOrderStore(redis, keyspace, REQUEST_TIMEOUT_MS);
  const principal = await lab.tenant();
  const jobsOver = (client: RedisClient) =>
    createJobStore(client, keyspace, {
      shard: SHARD,
      queue: 'interactive',
      claims: { leaseMs: LEASE_MS, areAllowed: () => jobLab.mayClaim },
    });

  async function queueUp(): Promise<LabRequest> {
    const request = await lab.admit({ withoutBody: true, principal });
    const { requestId, envelope } = request;
    const body = JSON.stringify(envelope);
    await queueOrder.enqueue(SHARD, 'interactive', { requestId, tenantId: principal.tenantId, body });
    return request;
  }

  const jobLab: JobLab = {
    ...lab,
    queue: queues.queue(SHARD, 'interactive'),
    jobs: jobsOver(redis),
    mayClaim: true,
    jobsOver,
    queueUp,
    async queueUpSome(count) {
      const ids: string[] = [];
      for (let index = 0; index < count; index += 1) ids.push((await queueUp()).requestId);
      return ids;
    },
    async take(most) {
      const taken = await jobLab.jobs.take(most, LOCK_MS);
      if (taken === 'other') throw new Error('Nothing was handed out.');
      return taken;
    },
    recordOf: (requestId) => redis.hgetall(keys.record(requestId)),
    hasMarker: async () => (await redis.exists(keys.marker('interactive'))) === 1,
    async close() {
      await queues.close();
      await lab.close();
    },
  };
  return jobLab;
}
