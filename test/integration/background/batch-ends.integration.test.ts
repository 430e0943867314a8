import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createChatQueues } from '../../../shared/queue/queues.ts';
import type { ChatQueues } from '../../../shared/queue/queues.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { createBatchLab, textOf } from '../../support/batch-lab.ts';
import type { BatchLab } from '../../support/batch-lab.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { holdLead } from '../../support/hold-lead.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TestTenant } from '../../support/service.ts';
import { mongoUri } from '../../support/stores.ts';
import { useRollback } from '../../support/use-rollback.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

const contents = (count: number) => Array.from({ length: count }, (_, index) => `Question ${index}`);

describe('a batch that is being ended while MongoDB is away', () => {
  let lab: BatchLab;
  const service = useService({ workers: 0, env: { WORKER_BATCH_CONCURRENCY: '2' } });
  const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(service.mongo.name)));
  beforeAll(async () => {
    lab = createBatchLab(service);
    await service.startWorker({ MONGODB_URI: mongo.url });
  });

  it.each([
    ['cancelled', (batchId: string) => lab.cancel(batchId)],
    [
      'expired',
      async (batchId: string) => {
        await service.models.batches.updateOne({ _id: batchId }, { $set: { expiresAt: Date.now() - 1 } });
      },
    ],
  ] as const)('comes to its end when MongoDB is back: %s', async (status, end) => {
    service.provider.change({ first_token_ms: 3_000 });
    const tenant = await service.startTenant();
    const batchId = await lab.submit(tenant, contents(20));
    await lab.until(batchId, 'to run', ({ startedAt }) => startedAt !== undefined);
    await end(batchId);
    const over = { batchId, state: 'failed' } as const;
    await waitUntil(async () => (await service.models.batchLines.countDocuments(over)) > 0, 'that to begin');

    mongo.set('reset');
    await pause(1_500);
    mongo.set('pass');

    const row = await lab.until(batchId, 'to end', (found) => found.status === status);
    expect(row.completed + row.failed).toBe(20);
    expect((await lab.lines(batchId)).filter(({ state }) => state === 'waiting')).toEqual([]);
  });
});

describe('a line whose queue is paused for longer than a request may take', () => {
  let lab: BatchLab;
  let queues: ChatQueues;
  const service = useService({ env: { REQUEST_TIMEOUT_SECONDS: '2' } });
  beforeAll(() => {
    lab = createBatchLab(service);
    queues = createChatQueues(service.redis, service.keyspace, () => undefined);
  });
  afterAll(async () => {
    await queues.close();
  });

  it('has not failed by its own fault, although others are answered meanwhile', async () => {
    const { redis, keyspace } = service;
    const tenant = await service.startTenant();
    await queues.queue(0, 'batch').pause();
    const batchId = await lab.submit(tenant, ['Patience']);
    const waiting = await waitFor(async () => {
      const [id] = await redis.zrange(keyspace.shard(0).prioritized('batch'), '0', '0');
      return id;
    }, 'the line to wait');
    expect((await postChat(service.app, tenant.key, chatOf('Hi'))).status).toBe(200);
    await pause(2_000);
    // The sweep would come to it some seconds later.
    await redis.zadd(keyspace.shard(0).inflight, 'XX', 0, waiting);

    const [line] = await waitFor(async () => {
      const lines = await lab.lines(batchId);
      return lines[0]?.retry === undefined ? undefined : lines;
    }, 'the line to be tried again');

    expect(line?.retry).toMatchObject({ tries: 1, faults: 0 });
    await queues.queue(0, 'batch').resume();
    expect(await lab.until(batchId, 'to end', ({ status }) => status === 'completed')).toMatchObject({ completed: 1 });
  });
});

describe('a batch that is cancelled when Redis comes back without its last second', () => {
  let queues: ChatQueues;
  let lab: BatchLab;
  const { proxy, direct, service, snapshot, rollBack } = useRollback();
  beforeAll(() => {
    lab = createBatchLab(service);
    queues = createChatQueues(direct, service.keyspace, () => undefined);
  });
  afterAll(() => queues.close());

  const charges = ({ tenantId }: TestTenant) => service.models.ledger.countDocuments({ tenantId, type: 'usage' });

  it('runs and charges none of the lines that it says did not run', async () => {
    const keys = service.keyspace.shard(0);
    const tenant = await service.startTenant();
    await queues.queue(0, 'batch').pause();
    const batchId = await lab.submit(tenant, contents(5));
    await waitUntil(async () => (await direct.zcard(keys.prioritized('batch'))) === 5, 'the lines to wait');
    const before = await snapshot();
    await lab.cancel(batchId);
    await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');

    await rollBack(before);
    await queues.queue(0, 'batch').resume();

    await waitUntil(async () => (await direct.zcard(keys.inflight)) === 0, 'what is left to end');
    await waitUntil(async () => (await direct.xlen(keys.outbox)) === 0, 'the charges to be booked');
    expect((await lab.lines(batchId)).map(({ error }) => error?.code)).toEqual(Array(5).fill('conflict'));
    expect(await charges(tenant)).toBe(0);
  });

  it.each([
    ['has the answers of the lines that run', 5],
    ['runs none of the lines that wait', 0],
  ])('%s, where it is cancelled while Redis is away', async (_, completed) => {
    const keys = service.keyspace.shard(0);
    const tenant = await service.startTenant();
    service.provider.change({ first_token_ms: 1_500 });
    if (completed === 0) await queues.queue(0, 'batch').pause();
    const batchId = await lab.submit(tenant, contents(5));
    const ids = (await lab.lines(batchId)).map(({ requestId }) => requestId);
    const stateOf = (id: string) => direct.hget(keys.record(id), 'state');
    await waitUntil(async () => {
      const states = await Promise.all(ids.map(stateOf));
      return states.every((state) => state === (completed === 0 ? 'accepted' : 'running'));
    }, 'the lines');
    proxy.set('reset');
    await lab.cancel(batchId);

    proxy.set('pass');

    expect(await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled')).toMatchObject({ completed });
    await queues.queue(0, 'batch').resume();
    expect(await lab.chargedAtRest(tenant)).toHaveLength(completed);
    service.provider.change({ first_token_ms: 0 });
  });

  it('has the answers that are charged, although Redis has lost all of their requests', async () => {
    const keys = service.keyspace.shard(0);
    const tenant = await service.startTenant();
    const before = await snapshot();
    service.provider.change({ first_token_ms: 1_500 });
    const batchId = await lab.submit(tenant, contents(5), { metadataJson: '{"a":1}' });
    await waitUntil(async () => (await direct.zcard(keys.inflight)) === 5, 'the lines to run');
    // Nobody brings the answers into the results.
    const giveUpLead = await holdLead(direct, keys.lease('batches'));
    await waitUntil(async () => (await charges(tenant)) === 5, 'the lines to be charged');
    expect((await lab.lines(batchId)).map(({ state }) => state)).toEqual(Array(5).fill('waiting'));
    await lab.cancel(batchId);
    await giveUpLead();

    await rollBack(before);

    expect(await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled')).toMatchObject({ completed: 5 });
    for (const line of await lab.lines(batchId)) {
      expect(textOf(line)).not.toBe('');
      expect(line.fields).toMatchObject({ tier: 'mobius', billed: '1', metadata: '{"a":1}' });
    }
    expect(await charges(tenant)).toBe(5);
    service.provider.change({ first_token_ms: 0 });
  });

  it.each([
    ['lost their requests', 'before'],
    ['their requests in line again', 'inLine'],
  ] as const)(
    'has the answers that are charged, although they were being taken out of line by a leader when Redis came back with %s',
    async (_, when) => {
      const keys = service.keyspace.shard(0);
      const tenant = await service.startTenant();
      const before = await snapshot();
      await queues.queue(0, 'batch').pause();
      const batchId = await lab.submit(tenant, contents(5));
      await waitUntil(async () => (await direct.zcard(keys.prioritized('batch'))) === 5, 'the lines to wait');
      const inLine = await snapshot();
      // Nobody brings the answers into the results.
      const giveUpLead = await holdLead(direct, keys.lease('batches'));
      await queues.queue(0, 'batch').resume();
      await waitUntil(async () => (await charges(tenant)) === 5, 'the lines to be charged');
      const ids = (await lab.lines(batchId)).map(({ requestId }) => requestId);
      await lab.cancel(batchId);
      await giveUpLead();

      const owner = { shard: 0, tenantId: tenant.tenantId, keyId: tenant.keyId };
      const limits = { queueLimit: 10, requestTimeoutMs: 600_000, retentionMs: 60_000 };
      const admissions = createAdmissionStore(direct, service.keyspace, limits);
      await rollBack({ before, inLine }[when], () => Promise.all(ids.map((id) => admissions.void(id, owner))));
      await queues.queue(0, 'batch').resume();

      expect(await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled')).toMatchObject({
        completed: 5,
      });
      for (const line of await lab.lines(batchId)) expect(textOf(line)).not.toBe('');
      expect(await charges(tenant)).toBe(5);
    },
  );
});
