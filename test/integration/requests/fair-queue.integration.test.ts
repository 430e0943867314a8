import { beforeEach, describe, expect, it } from '@jest/globals';
import { Worker } from 'bullmq';

import { JOBS } from '../../../shared/contracts/jobs.ts';
import { createChatQueues } from '../../../shared/queue/queues.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { LabKey } from '../../support/admission-lab.ts';
import { openTestRedis } from '../../support/stores.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

const SHARD = 2;
const BODY = '{"requestId":"req"}';

const lab = useStarted('lab', openAdmissionLab);
const queues = useStarted('queues', () => Promise.resolve(createChatQueues(lab.redis, lab.keyspace, () => undefined)));
/** Ids are each test's own. */
let run = 0;
beforeEach(async () => {
  run += 1;
  await lab.redis.del(lab.keys.prioritized('interactive'), lab.keys.marker('interactive'));
});

const queue = () => queues.queue(SHARD, 'interactive');

/** Takes what waits, one job at a time, and returns the ids in the order in which BullMQ hands them out. */
async function takeAll(count: number): Promise<string[]> {
  const taken: string[] = [];
  const connection = await openTestRedis('worker');
  const worker = new Worker(
    'interactive',
    (job) => {
      taken.push((job.id ?? '').replace(/^\d+-/, ''));
      return Promise.resolve();
    },
    { connection, prefix: lab.keys.tag, concurrency: 1, removeOnComplete: { count: 0 } },
  );
  try {
    await waitUntil(() => taken.length >= count, `${count} jobs`);
  } finally {
    await worker.close();
    await connection.quit();
  }
  return taken;
}

/** Puts requests of one key into line, named by the tenant's letter and their number. */
async function queueUp(key: LabKey, name: string, count: number, from = 0, tokens = 100): Promise<void> {
  for (let index = from; index < from + count; index += 1)
    await key.admit({ requestId: `${run}-${name}${index}`, promptTokens: tokens, maxTokens: 1, body: BODY });
}

describe('a job that is added with its admission', () => {
  it('is field by field what BullMQ adds itself, so that an update of BullMQ cannot drift', async () => {
    const key = await lab.key();
    const { job, attempts, removeOnComplete, removeOnFail } = JOBS.interactive;
    const payload = { tenantId: key.principal.tenantId };
    await queue().add(job, payload, { jobId: 'req_theirs', attempts, removeOnComplete, removeOnFail });

    await key.admit({ requestId: 'req_ours', body: BODY });

    const [ours, theirs] = await Promise.all(
      ['req_ours', 'req_theirs'].map((id) => lab.redis.hgetall(lab.keys.job('interactive', id))),
    );
    const parsed = ({ opts = '{}', timestamp, ...rest }: Record<string, string>) => ({
      ...rest,
      opts: { ...(JSON.parse(opts) as object), jobId: 'req' },
      hasTimestamp: Math.abs(Number(timestamp) - Date.now()) < 60_000,
    });
    expect(parsed(ours ?? {})).toEqual(parsed(theirs ?? {}));
    expect(await (await queue().getJob('req_ours'))?.getState()).toBe('prioritized');
    await queue().remove('req_ours');
    await queue().remove('req_theirs');
  });

  it('has its body beside it, with the time of its acceptance', async () => {
    const key = await lab.key();
    const { now } = await key.admit({ requestId: 'req_body', body: '{"request":{"messages":[]}}' });
    expect(JSON.parse((await lab.redis.get(lab.keys.body('req_body'))) ?? '')).toEqual({
      request: { messages: [] },
      acceptedAt: now,
    });
  });

  it('is written once, however often the admission is sent', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_again', body: BODY });
    const before = await lab.snapshot();
    await key.admit({ requestId: 'req_again', body: BODY });
    expect(await lab.snapshot()).toEqual(before);
  });

  it('waits while the queue is paused', async () => {
    const key = await lab.key();
    await queue().pause();
    const connection = await openTestRedis('worker');
    const taken: string[] = [];
    const worker = new Worker('interactive', (job) => Promise.resolve(taken.push(job.id ?? '')), {
      connection,
      prefix: lab.keys.tag,
    });
    await worker.waitUntilReady();

    await key.admit({ requestId: 'req_paused', body: BODY });
    expect(await lab.redis.exists(lab.keys.marker('interactive'))).toBe(0);
    expect(await queue().getJobCounts('prioritized', 'active')).toEqual({ prioritized: 1, active: 0 });
    await queue().resume();

    await waitUntil(() => taken.includes('req_paused'), 'the job');
    await worker.close();
    await connection.quit();
  });

  it('leaves the line when its admission is taken back', async () => {
    const key = await lab.key();
    await key.admit({ requestId: 'req_void', body: BODY });
    await lab.store.void('req_void', key.principal);
    expect(await lab.redis.zcard(lab.keys.prioritized('interactive'))).toBe(0);
    expect(await lab.redis.exists(lab.keys.job('interactive', 'req_void'), lab.keys.body('req_void'))).toBe(0);
  });
});

describe('turns', () => {
  it('alternate between tenants, however many requests one has in line before the other comes', async () => {
    const [a, b] = [await lab.key(), await lab.key()];
    await queueUp(a, 'a', 6);
    await queueUp(b, 'b', 3);

    const order = await takeAll(9);

    // The first of both have the same turn.
    expect(order.slice(0, 2).sort()).toEqual(['a0', 'b0']);
    expect(order.slice(2, 4).sort()).toEqual(['a1', 'b1']);
    expect(order.slice(4, 6).sort()).toEqual(['a2', 'b2']);
    expect(order.slice(6)).toEqual(['a3', 'a4', 'a5']);
  });

  it('go by work, not by requests', async () => {
    const [large, small] = [await lab.key(), await lab.key()];
    await queueUp(large, 'l', 4, 0, 999);
    await queueUp(small, 's', 10, 0, 99);

    const order = await takeAll(14);

    // A turn of 1,100 tokens for five and a half of 200.
    const before = order.slice(0, order.indexOf('l2')).filter((id) => id.startsWith('s')).length;
    expect(before).toBeGreaterThanOrEqual(9);
  });

  it('keep the order of acceptance within a tenant', async () => {
    const [a, b] = [await lab.key(), await lab.key()];
    for (let round = 0; round < 4; round += 1) {
      await queueUp(a, 'a', 2, round * 2, round % 2 === 0 ? 900 : 10);
      await queueUp(b, 'b', 1, round);
    }
    const order = await takeAll(12);
    expect(order.filter((id) => id.startsWith('a'))).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((index) => `a${index}`));
  });

  it('go by what the tenant owes: it delays its next turns, and those that have a place keep it', async () => {
    const [short, long] = [await lab.key(), await lab.key()];
    await queueUp(short, 'a', 2);
    await queueUp(long, 'b', 2);
    await lab.redis.hincrby(lab.keys.account(long.principal.tenantId), 'debt:interactive', 1_000);
    await queueUp(short, 'a', 4, 2);
    await queueUp(long, 'b', 4, 2);

    const order = await takeAll(12);

    expect(order.indexOf('b3')).toBeGreaterThan(order.indexOf('a5'));
    expect(order.filter((id) => id.startsWith('b'))).toEqual(['b0', 'b1', 'b2', 'b3', 'b4', 'b5']);
  });
});
