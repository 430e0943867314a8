import { QUEUE_NAMES } from '../contracts/jobs.ts';
import type { QueueName } from '../contracts/jobs.ts';
import { CLOCKS_APART_MS } from '../domain/request-times.ts';
import type { ChatQueues } from '../queue/queues.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript, createShardClocks } from '../redis/scripts.ts';
import { serverTimeMs } from '../redis/time-limits.ts';
import { factsOfRecord, queueOfRecord } from './delivery.ts';

/** Its lease, or time to be queued, has run out. */
export interface Overdue {
  requestId: string;
  /** `missing`: the record is gone. */
  state: string;
  tenantId: string;
  keyId: string;
  queue: QueueName;
  fence: number;
  /** Deliveries since it was accepted, or last run again. */
  deliveries: number;
  /** The last event's number from the silent worker; 0: none. */
  sent: number;
  /** Milliseconds until the request's deadline; negative when it has passed. */
  remainingMs: number;
  /** With a body the request can still run. */
  hasBody: boolean;
  /** For the request's end; milliseconds. Undefined: the service's own time. */
  retentionMs: number | undefined;
  /** BullMQ will hand the job out. */
  jobPending: boolean;
  facts: ReturnType<typeof factsOfRecord>;
}

/** Orders open requests by the time at which the sweep must look after them. */
export type Inflight = ReturnType<typeof createInflight>;

/** A request due so far ahead was written before the server's clock was set back; its worker may be dead. */
const FAR_MS = 60_000;
/** Such a request becomes due then: a living worker renews its lease and its job's lock before. */
const NEAR_MS = 10_000;

/** Longer than a renewal interval of leases (workers/pipeline/claim.ts): by then every living worker has renewed. */
const RENEWED_MS = 5_000;

/** BullMQ does not hand these out any more. */
const NOT_PENDING: ReadonlySet<string> = new Set(['completed', 'failed', 'unknown']);

/** `at`: the shard's time, milliseconds since the epoch. */
async function describe(
  client: RedisClient,
  keyspace: Keyspace,
  queues: ChatQueues,
  { shard, requestId, at }: { shard: number; requestId: string; at: number },
): Promise<Overdue> {
  const keys = keyspace.shard(shard);
  const values = await client.hmget(
    keys.record(requestId),
    'state',
    'tenant',
    'key',
    'fence',
    'lastSeq',
    'deadline',
    'queue',
    'retentionMs',
    'base',
    'tier',
    'billed',
    'acceptedAt',
  );
  const [state, tenantId, keyId, fence, sent, deadline, queueName, keep, base, ...facts] = values;
  const queue = queueOfRecord(queueName);
  const [job, body] = await Promise.all([
    queues.queue(shard, queue).getJobState(requestId),
    client.exists(keys.body(requestId)),
  ]);
  return {
    requestId,
    state: state ?? 'missing',
    tenantId: tenantId ?? '',
    keyId: keyId ?? '',
    queue,
    fence: Number(fence ?? 0),
    // requeue.lua sets `base`: a request that is run again continues from its last fence.
    deliveries: Number(fence ?? 0) - Number(base ?? 0),
    sent: Number(sent ?? 0),
    remainingMs: Number(deadline ?? 0) - at,
    hasBody: body === 1,
    retentionMs: keep === null || keep === undefined ? undefined : Number(keep),
    jobPending: !NOT_PENDING.has(job),
    facts: factsOfRecord(queue, facts),
  };
}

/** Notices that a shard's server clock was set. */
function createClockWatch(client: RedisClient, keyspace: Keyspace) {
  const clocks = createShardClocks();
  /** For shards whose clock was set ahead: until then expired leases say nothing. */
  const renewedBy = new Map<number, number>();

  /**
   * BullMQ looks for jobs with expired locks once a mark of 3 s has gone. A longer mark was set before the server's
   * clock was set back: nobody would look until the clock has caught up.
   */
  async function shortenStallMarks(shard: number): Promise<void> {
    const { stalledCheck } = keyspace.shard(shard);
    await Promise.all(QUEUE_NAMES.map((queue) => client.pexpire(stalledCheck(queue), NEAR_MS, 'LT')));
  }

  /**
   * Returns the shard's time. A clock that was set back, or is read for the first time, shortens BullMQ's marks; one
   * that was set ahead gives leases time to be renewed.
   */
  async function lookAtClock(shard: number): Promise<number> {
    const sentAt = performance.now();
    const at = await serverTimeMs(client, keyspace.shard(shard).inflight);
    const receivedAt = performance.now();
    const expected = clocks.at(shard, receivedAt);
    clocks.learn(shard, at, sentAt, receivedAt);
    const setByMs = expected === undefined ? undefined : (clocks.at(shard, receivedAt) ?? expected) - expected;
    if (setByMs === undefined || setByMs < -CLOCKS_APART_MS) await shortenStallMarks(shard);
    else if (setByMs > CLOCKS_APART_MS) renewedBy.set(shard, receivedAt + RENEWED_MS);
    return at;
  }

  const areLeasesRenewed = (shard: number) => performance.now() >= (renewedBy.get(shard) ?? -Infinity);
  return { lookAtClock, areLeasesRenewed };
}

export function createInflight(client: RedisClient, keyspace: Keyspace, queues: ChatQueues) {
  const { lookAtClock, areLeasesRenewed } = createClockWatch(client, keyspace);
  const postpone = defineScript(client, 'postpone');

  async function bringNearer(shard: number, requestId: string): Promise<void> {
    const keys = keyspace.shard(shard);
    await Promise.all([
      postpone([keys.inflight], [requestId, NEAR_MS]),
      ...QUEUE_NAMES.map((queue) => client.pexpire(keys.lock(queue, requestId), NEAR_MS, 'LT')),
    ]);
  }

  return {
    /** A worker that never reads the server's clock cannot notice that it was set. */
    async watchClock(shard: number): Promise<void> {
      await lookAtClock(shard);
    },

    /** None for 5 s after the server's clock was set ahead: living workers have yet to renew their leases. */
    async overdue(shard: number, limit: number): Promise<Overdue[]> {
      const { inflight } = keyspace.shard(shard);
      const at = await lookAtClock(shard);
      if (!areLeasesRenewed(shard)) return [];
      const [ids, far] = await Promise.all([
        client.zrangebyscore(inflight, '-inf', at, 'LIMIT', 0, limit),
        client.zrangebyscore(inflight, at + FAR_MS, '+inf', 'LIMIT', 0, limit),
      ]);
      await Promise.all(far.map((requestId) => bringNearer(shard, requestId)));
      return Promise.all(ids.map((requestId) => describe(client, keyspace, queues, { shard, requestId, at })));
    },
    /** Counts `delayMs` from now. */
    async postpone(shard: number, requestId: string, delayMs: number): Promise<void> {
      await postpone([keyspace.shard(shard).inflight], [requestId, delayMs]);
    },
    /** Safe to repeat. */
    async forget(shard: number, requestId: string): Promise<void> {
      await client.zrem(keyspace.shard(shard).inflight, requestId);
    },
  };
}
