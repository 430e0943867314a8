import type { QueueName } from '../../../contracts/jobs.ts';
import { randomBase62 } from '../../../lifecycle/ids.ts';
import { storedChatJob } from '../../queue/chat-job.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import type { MadeClaim } from './running-request.ts';

/** A job in this worker's hands. */
export interface TakenJob {
  id: string;
  /** BullMQ's fields: names and values in turn. */
  fields: string[];
  /** What proves to the queue that this worker has it. */
  lock: string;
  /** The request is this worker's already. Undefined: it has yet to be claimed. */
  claim: MadeClaim | undefined;
}

/** The jobs of one queue of a shard, for a worker that takes several at once. */
export interface JobStore {
  /** The next jobs; fewer than `most` where no more wait. `other`: the queue has what only BullMQ itself can hand out. */
  take(most: number, lockMs: number): Promise<TakenJob[] | 'other'>;
  /** Puts jobs back that have not been started; another worker's stay with it. */
  giveBack(jobs: readonly TakenJob[]): Promise<void>;
}

export interface ClaimSettings {
  leaseMs: number;
  /** Whether requests may be claimed as their jobs are taken. */
  areAllowed: () => boolean;
}

/** The fields of a job that starts for the first time, as the queue has them now. */
function fieldsOfFirst(
  queue: QueueName,
  requestId: string,
  { tenantId, timestamp, now }: { tenantId: string; timestamp: string; now: number },
): string[] {
  const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
  const fields = { name, data, opts, timestamp, delay: '0', priority: '0', processedOn: String(now), ats: '1' };
  return Object.entries(fields).flat();
}

/** `client`: on a cluster, a connection to the master of the shard. `claims` undefined: jobs are taken only. */
export function createJobStore(
  client: RedisClient,
  keyspace: Keyspace,
  { shard, queue, claims }: { shard: number; queue: QueueName; claims: ClaimSettings | undefined },
): JobStore {
  const take = defineScript(client, 'take', ['window', 'account', 'claiming']);
  const giveBack = defineScript(client, 'give-back');
  const keys = keyspace.shard(shard);
  const taking = [
    ...[keys.waiting(queue), keys.line(queue), keys.active(queue), keys.queueMeta(queue), keys.marker(queue)],
    ...[keys.delayed(queue), keys.priorityCounter(queue), keys.inflight],
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
   * ioredis sends a call again whose answer was lost: then Redis has taken twice, and we know of one time. It may also
   * have come back without what other workers did, so nothing of either time is kept.
   */
  async function giveBackLost(lock: string): Promise<void> {
    // The latest come first there.
    const active = await client.lrange(keys.active(queue), 0, -1);
    await giveBackAll(lock, active.reverse());
  }

  return {
    async take(most, lockMs) {
      const lock = randomBase62(12);
      const leaseMs = claims?.areAllowed() === true ? claims.leaseMs : '';
      const breaksBefore = breaks;
      const now = Date.now();
      const reply = await take(taking, [most, lock, lockMs, now, leaseMs, lock, ...prefixes]);
      if (breaks !== breaksBefore) {
        // Where it fails, they are handed out again when their locks have run out.
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
        // The script names each claim after its place.
        return { id, fields: fieldsOfFirst(queue, id, first), lock, claim: { owner: `${lock}${index}`, reply: claim } };
      });
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
