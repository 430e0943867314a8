import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitFor, waitUntil } from '../../support/chat.ts';
import { openStream, post, seqsOf } from '../../support/stream-client.ts';
import { openOwnRedis } from '../../support/redis/own-servers.ts';
import type { RunningWorker } from '../../support/service.ts';
import { useService, useStarted } from '../../support/use-service.ts';

const CREDITS = 1_000_000;
const STREAMS = 10;
/** A queue that reports its failures without a pause has thousands in that time. */
const REPORTS_MAX = 200;
/** As long as the ingress may take to see the memory, and a request to be refused. */
const REFUSED_WITHIN_MS = 2_500;

describe('a full Redis', () => {
  let worker: RunningWorker;
  const redis = useStarted('redis', openOwnRedis);
  const service = useService(() => ({ env: { REDIS_URL: redis.url }, workers: 0 }));
  beforeAll(async () => {
    worker = await service.startWorker();
  });
  afterEach(async () => {
    await setMaxMemory(0);
    service.provider.restore();
  });

  const headersOf = (key: string) => ({ Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' });

  async function usedMemory(): Promise<number> {
    return Number(/^used_memory:(\d+)/m.exec(await service.redis.info('memory'))?.[1]);
  }

  async function setMaxMemory(bytes: number): Promise<void> {
    await service.redis.call('CONFIG', 'SET', 'maxmemory', String(Math.floor(bytes)));
  }

  /** As the ingress shows it. */
  async function memoryRatio(): Promise<number> {
    return Number(/^parley_redis_memory_ratio\{.*\} (\S+)$/m.exec(await service.metrics())?.[1]);
  }

  async function isSettled(tenantId: string): Promise<true | undefined> {
    const { body } = await service.admin('get', `/tenants/${tenantId}`);
    const waiting = await service.redis.xlen(service.keyspace.shard(await shardOf(tenantId)).outbox);
    return body.held === 0 && waiting === 0 ? true : undefined;
  }

  /** What the queue has handed out and not heard of since. */
  async function jobsInHand(tenantId: string): Promise<number> {
    return service.redis.llen(`${service.keyspace.shard(await shardOf(tenantId)).tag}:interactive:active`);
  }

  async function shardOf(tenantId: string): Promise<number> {
    const row = await service.models.tenants.findById(tenantId).lean();
    return row?.shard ?? 0;
  }

  async function expectService(key: string): Promise<void> {
    await waitUntil(
      async () => (await post(service.url, key, '/chat', chatOf('And now?'))).status === 200,
      'service',
      10_000,
    );
  }

  it('ends and charges what runs, refuses what is new with 503, and serves again by itself', async () => {
    service.provider.change({ chunks: 130, chunk_ms: 100 });
    const { key, tenantId } = await service.startTenant({ credits: CREDITS });
    const streams = await Promise.all(
      Array.from({ length: STREAMS }, (_, index) => openStream(service.url, key, chatOf(`Stream ${index}`))),
    );
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text of every stream');

    await setMaxMemory((await usedMemory()) * 0.9);
    const refusals = [];
    for (const path of ['/chat', '/chat', '/chat/stream']) {
      const askedAt = performance.now();
      const { status, headers } = await post(service.url, key, path, chatOf('Is there room?'));
      refusals.push({
        status,
        retry: headers.get('retry-after'),
        late: performance.now() - askedAt > REFUSED_WITHIN_MS,
      });
    }
    const reads = await Promise.all(streams.map(({ ended }) => ended));
    await waitFor(() => isSettled(tenantId), 'settlement in a full Redis', 10_000);

    expect(refusals).toEqual(refusals.map(() => ({ status: 503, retry: expect.stringMatching(/^\d+$/), late: false })));
    for (const read of reads) {
      expect(seqsOf(read)).toEqual(seqsOf(read).map((_, index) => index + 1));
      expect([read.finishReason, read.isDone]).toEqual(['stop', true]);
    }
    const charged = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    expect(new Set(charged.map(({ requestId }) => requestId))).toEqual(
      new Set(streams.map(({ requestId }) => requestId)),
    );
    await setMaxMemory(0);
    await expectService(key);
    await waitUntil(async () => (await jobsInHand(tenantId)) === 0, 'the queue to empty', 20_000);
  });

  it('refuses with 503 above 90 % of its memory, and shows the share', async () => {
    const { key } = await service.startTenant({ credits: CREDITS });
    await waitUntil(async () => (await memoryRatio()) === 0, 'a look at the memory');
    await setMaxMemory((await usedMemory()) / 0.95);

    await waitUntil(async () => (await memoryRatio()) > 0.9, 'the ingress to see it');
    expect(await memoryRatio()).toBeLessThan(1);
    const refused = await post(service.url, key, '/chat', chatOf('Is there room?'));

    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    await setMaxMemory(0);
    await expectService(key);
  });

  it('leaves nothing behind of what it refuses', async () => {
    const { key } = await service.startTenant({ credits: CREDITS });
    await setMaxMemory((await usedMemory()) * 0.9);
    const records = () => service.redis.keys('*:r:*');
    const before = await records();

    await Promise.all(Array.from({ length: 20 }, () => post(service.url, key, '/chat', chatOf('Is there room?'))));

    expect(await records()).toEqual(before);
  });

  it('runs what waits in the queue, although the queue can hand nothing out', async () => {
    const { key, tenantId } = await service.startTenant({ credits: CREDITS });
    await worker.close();
    const ask = { headers: { ...headersOf(key), Prefer: 'respond-async' } };
    const accepted = await Promise.all([1, 2, 3].map((n) => post(service.url, key, '/chat', chatOf(`Ask ${n}`), ask)));
    expect(accepted.map(({ status }) => status)).toEqual([202, 202, 202]);
    await setMaxMemory((await usedMemory()) * 0.9);

    const linesBefore = service.log.lines.length;
    worker = await service.startWorker();

    await waitUntil(
      async () => (await service.models.ledger.countDocuments({ tenantId, type: 'usage' })) === 3,
      'three charges in a full Redis',
      45_000,
    );
    await waitFor(() => isSettled(tenantId), 'the end of all holds');
    expect(service.log.lines.length - linesBefore).toBeLessThan(REPORTS_MAX);
  });
});
