import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createBatchLab } from '../../support/batch-lab.ts';
import type { BatchLab } from '../../support/batch-lab.ts';
import { openLeader } from '../../support/batch-leader.ts';
import { snapshotOf } from '../../support/roll-back.ts';
import type { RunningWorker } from '../../support/service.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { useService, useStarted, useTenantPerTest } from '../../support/use-service.ts';

let lab: BatchLab;
/** By how much the leader's clock is ahead of this test's. */
let aheadMs = 0;
const workers: RunningWorker[] = [];
const service = useService({ workers: 0 });
const leader = useStarted('leader', () => openLeader(service, { now: () => Date.now() + aheadMs }));
const tenant = useTenantPerTest(service);
beforeAll(() => {
  lab = createBatchLab(service);
});
afterEach(async () => {
  await leader.stop();
  while (workers.length > 0) await workers.pop()?.close();
});

async function startNext(): Promise<void> {
  workers.push(await service.startWorker());
}

/** So many lines of a tenant are sent at once (fill-queue.ts). */
const SLICE = 8;

const contents = (count: number) => Array.from({ length: count }, (_, index) => `Question ${index}`);

const chargesAtRest = async () => (await lab.chargedAtRest(tenant)).length;

describe('a leader that is cut off with lines in its hands', () => {
  it.each([
    ['cancelled', (batchId: string) => lab.cancel(batchId)],
    [
      'expired',
      async (batchId: string) => {
        await service.models.batches.updateOne({ _id: batchId }, { $set: { expiresAt: Date.now() - 1 } });
      },
    ],
  ] as const)('sends none of a batch that the next leader has ended: %s', async (status, end) => {
    const batchId = await lab.submit(tenant, contents(5));
    const { letGo, ended } = await leader.takeInHand();
    await end(batchId);
    await service.redis.del(service.keyspace.shard(0).lease('batches'));
    await startNext();
    await lab.until(batchId, 'to end', (row) => row.status === status);

    letGo();
    await ended;

    expect(await chargesAtRest()).toBe(0);
    expect((await lab.lines(batchId)).map(({ error }) => error?.code)).toEqual(
      Array(5).fill(status === 'expired' ? 'timeout' : 'conflict'),
    );
  });

  it('sends none of it although it leads again', async () => {
    const batchId = await lab.submit(tenant, contents(5));
    const { letGo, ended } = await leader.takeInHand();
    await lab.cancel(batchId);
    await service.redis.del(service.keyspace.shard(0).lease('batches'));
    await startNext();
    await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');
    await workers.pop()?.close();
    await leader.takeLease();

    letGo();
    await ended;

    await startNext();
    expect(await chargesAtRest()).toBe(0);
  });

  it('leaves the lines to the next leader, which runs each once', async () => {
    const batchId = await lab.submit(tenant, contents(20));
    const { letGo, ended } = await leader.takeInHand();
    await service.redis.del(service.keyspace.shard(0).lease('batches'));
    await startNext();
    await waitUntil(async () => (await lab.row(batchId)).completed > 0, 'the next leader to lead');

    letGo();
    await ended;

    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'completed');
    expect(row).toMatchObject({ completed: 20, failed: 0 });
    expect(await chargesAtRest()).toBe(20);
  });
});

describe('a leader that hears nothing of an admission', () => {
  it('lets the line run on that a worker has already', async () => {
    await leader.takeLease();
    await lab.submit(tenant, contents(1));

    const requestId = await leader.loseAnswer();

    const { redis, keyspace } = service;
    // Behind what the leader has sent: commands of a connection go in order.
    const fields = await redis.hmget(keyspace.shard(0).record(requestId), 'state', 'cancel', 'unbilled');
    expect(fields).toEqual(['running', null, null]);
  });

  it('does not fail lines that run for the end of their key', async () => {
    await leader.takeLease();
    const batchId = await lab.submit(tenant, contents(SLICE + 1));
    await leader.loseAnswer();
    await service.admin('delete', `/tenants/${tenant.tenantId}/keys/${tenant.keyId}`);

    await waitUntil(async () => {
      await leader.lead();
      return (await lab.lines(batchId)).at(-1)?.state === 'failed';
    }, 'the line that was not sent to fail');

    const states = (await lab.lines(batchId)).map(({ state, error }) => error?.code ?? state);
    expect(states).toEqual([...Array<string>(SLICE).fill('waiting'), 'invalid_api_key']);
  });
});

describe('a leader whose clock is put back', () => {
  afterEach(() => {
    aheadMs = 0;
  });

  it('sends a batch that comes then', async () => {
    aheadMs = 3_600_000;
    await leader.takeLease();
    const first = await lab.submit(tenant, contents(1));
    await leader.loseAnswer();
    aheadMs = 0;
    await lab.cancel(first);
    await lab.submit(tenant, contents(1));

    expect(await leader.loseAnswer()).toMatch(/^req_/);
  });
});

describe('a Redis that comes back without its last second', () => {
  it('is told again which lines of a cancelled batch were taken out of line', async () => {
    const { redis, keyspace } = service;
    const { prioritized, record, tag } = keyspace.shard(0);
    let ids: string[] = [];
    const queued = async () => (await redis.zmscore(prioritized('batch'), ids)).filter((tag) => tag !== null).length;
    const leadUntil = (holds: () => Promise<boolean>, what: string) =>
      waitUntil(async () => {
        await leader.lead();
        return await holds();
      }, what);
    await leader.takeLease();
    const batchId = await lab.submit(tenant, contents(3));
    ids = (await lab.lines(batchId)).map(({ requestId }) => requestId);
    await leadUntil(async () => (await queued()) === 3, 'the lines');
    await lab.cancel(batchId);
    const before = await snapshotOf(redis, tag);
    await leadUntil(async () => (await lab.row(batchId)).status === 'cancelled', 'the end of the batch');
    await redis.unlink(...(await redis.keys(`${tag}*`)));
    for (const [key, value] of before) await redis.restore(key, 0, value);

    await leader.replay();

    expect(await queued()).toBe(0);
    const states = await Promise.all(ids.map((id) => redis.hget(record(id), 'state')));
    expect(states).toEqual(['void', 'void', 'void']);
    expect(service.log.errors()).toEqual([]);

    // A worker was faster.
    await redis.hset(record(ids[1] ?? ''), 'state', 'done');
    await leader.replay();

    expect(service.log.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields['requestId'])).toEqual(
      [ids[1]],
    );
  });

  it('is not to bring back a line of a batch that was closed since, however late its worker comes', async () => {
    const { redis, keyspace } = service;
    const { record, tag } = keyspace.shard(0);
    await leader.takeLease();
    const batchId = await lab.submit(tenant, contents(3));
    const ids = (await lab.lines(batchId)).map(({ requestId }) => requestId);
    const states = () => Promise.all(ids.map((id) => redis.hmget(record(id), 'state', 'voidUnconfirmed')));
    await waitUntil(async () => {
      await leader.lead();
      return (await states()).every(([state]) => state === 'accepted');
    }, 'the lines');
    await leader.stop();
    await redis.unlink(...(await redis.keys(`${tag}*`)));
    await lab.cancel(batchId);
    // Longer ago than most workers need to renew what they run.
    const next = await openLeader(service, systemClock, (_shard, withinMs = 0) => withinMs > 10_000);

    await waitUntil(async () => {
      await next.lead();
      return (await lab.row(batchId)).status === 'cancelled';
    }, 'the end of the batch');

    // Nobody puts back what is void, and not `voidUnconfirmed`.
    expect(await states()).toEqual(Array(3).fill(['void', null]));
    await next.stop();
    await next.close();
  });
});
