import type { Tier } from '../../../contracts/chat-request.ts';
import type { QueueName } from '../../../contracts/jobs.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import { fieldsOfFirstStart, MARKER } from '../../queue/bullmq-layout.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { MadeClaim } from './running-request.ts';

/** A job that this worker has taken. */
export interface TakenJob {
  id: string;
  /** The fields of BullMQ's hash, names and values in turn. */
  fields: string[];
  /** The value of the job's lock, which proves that this worker has it. */
  lock: string;
  /** The claim that was made with the job. Undefined: the request has yet to be claimed. */
  claim: MadeClaim | undefined;
}

/** The jobs of one queue of a shard, for a worker that takes several at once. */
export interface JobStore {
  /**
   * Returns the next jobs, none of the closed tiers; fewer than `most` if no more wait. `other`: only BullMQ itself can
   * hand out what waits.
   */
  take(most: number, lockMs: number, closed?: readonly Tier[]): Promise<TakenJob[] | 'other'>;
  /** Tells other workers that something may wait. */
  mark(): Promise<void>;
  /** Puts back jobs that have not been started. Jobs that another worker has by now stay with it. */
  giveBack(jobs: readonly TakenJob[]): Promise<void>;
}

export interface ClaimSettings {
  leaseMs: number;
  /** Whether requests may be claimed while their jobs are taken. */
  areAllowed: (shard: number) => boolean;
}

/** `client`: on a cluster, a connection to the master of the shard. `claims` undefined: jobs are taken only. */
export function createJobStore(
  client: RedisClient,
  keyspace: Keyspace,
  { shard, queue, claims }: { shard: number; queue: QueueName; claims: ClaimSettings | undefined },
): JobStore {
  const take = defineScript(client, 'take', ['window', 'account', 'line', 'claiming']);
  const giveBack = defineScript(client, 'give-back');
  const keys = keyspace.shard(shard);
  const taking = [
    keys.waiting(queue),
    keys.line(queue),
    keys.active(queue),
    keys.queueMeta(queue),
    keys.marker(queue),
    keys.delayed(queue),
    keys.priorityCounter(queue),
    keys.inflight,
  ];
  const prefixes = [keys.job(queue, ''), keys.record(''), keys.body(''), keys.account('')];

  let breaks = 0;
  client.on('close', () => (breaks += 1));

  async function giveBackAll(lock: string, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await giveBack(
      [keys.waiting(queue), keys.active(queue), keys.queueMeta(queue), keys.marker(queue)],
      [lock, lock, keys.job(queue, ''), keys.record(''), ...ids],
    );
  }

  /**
   * If the connection breaks, ioredis repeats the call: Redis may have taken jobs twice, and this worker knows of one time.
   * Redis may also have come back without what other workers did, so the jobs of both times go back.
   */
  async function giveBackLost(lock: string): Promise<void> {
    // That list begins with the latest.
    const active = await client.lrange(keys.active(queue), 0, -1);
    await giveBackAll(lock, active.reverse());
  }

  return {
    async take(most, lockMs, closed = []) {
      const lock = randomBase62(12);
      const leaseMs = claims?.areAllowed(shard) === true ? claims.leaseMs : '';
      const breaksBefore = breaks;
      const now = Date.now();
      const reply = await take(taking, [most, lock, lockMs, now, leaseMs, lock, ...prefixes, ...closed]);
      if (breaks !== breaksBefore) {
        // If this fails BullMQ hands them out again when their locks run out.
        await giveBackLost(lock).catch(() => undefined);
        return [];
      }
      if (!Array.isArray(reply)) return 'other';
      return reply.map((job, index) => {
        const [requestId, fields, claim, timestamp, tenantId] = Array.isArray(job) ? job : [];
        const id = String(requestId);
        if (!Array.isArray(claim))
          return { id, fields: Array.isArray(fields) ? fields.map(String) : [], lock, claim: undefined };
        const first = { tenantId: String(tenantId), timestamp: String(timestamp), now };
        // take.lua appends a claim's position to the prefix.
        return {
          id,
          fields: fieldsOfFirstStart(queue, id, first),
          lock,
          claim: { owner: `${lock}${index}`, reply: claim },
        };
      });
    },

    async mark() {
      await client.zadd(keys.marker(queue), MARKER.score, MARKER.member);
    },

    async giveBack(jobs) {
      for (const lock of new Set(jobs.map((job) => job.lock)))
        await giveBackAll(
          lock,
          jobs.filter((job) => job.lock === lock).map(({ id }) => id),
        );
    },
  };
}
