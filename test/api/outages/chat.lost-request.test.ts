import { beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, ledgerOf, postChat, requestIdOf, waitFor, waitUntil } from '../../support/chat.ts';
import { openStream, post, seqsOf } from '../../support/stream-client.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { rollBackTo, snapshotOf } from '../../support/roll-back.ts';
import { openTestRedis, redisUrl } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** A reader looks after its request every 5 s, and once more before it gives up; a busy machine takes longer. */
const LIMIT_MS = 20_000;

describe('a request that Redis has lost', () => {
  let key: string;
  let tenantId: string;
  // Nobody works: what is lost cannot be ended by anybody else.
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    ({ key, tenantId } = await service.startTenant());
  });

  /** As a Redis that comes back empty, as far as this request is concerned. */
  async function lose(): Promise<void> {
    const keys = service.keyspace.shard(0);
    const requestId = await waitFor(
      async () => (await service.redis.zrange(keys.inflight, '0', '0'))[0],
      'the admission',
    );
    await waitUntil(async () => (await service.redis.exists(keys.body(requestId))) === 1, 'its body');
    expect(await service.redis.hget(keys.record(requestId), 'tenant')).toBe(tenantId);
    await service.redis.del(keys.record(requestId), keys.stream(requestId), keys.body(requestId));
    await service.redis.zrem(keys.inflight, requestId);
  }

  it.each(['/chat', '/chat/stream'])(
    'a request that Redis has lost is answered 503 to whoever waits for %s',
    async (path) => {
      const start = performance.now();
      const waiting = post(service.url, key, path, chatOf('Hi'));
      await lose();

      const response = await waiting;

      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('1');
      expect(await response.json()).toMatchObject({ error: { code: 'model_unavailable', type: 'overloaded_error' } });
      expect(performance.now() - start).toBeLessThan(LIMIT_MS);
    },
  );

  describe('that runs', () => {
    const other = useService();

    async function begin(prompt = 'A long story') {
      const { tenantId: tenant, key: otherKey } = await other.startTenant();
      const stream = await openStream(other.url, otherKey, chatOf(prompt));
      await waitUntil(() => stream.read.text.length > 0, 'the first text');
      return { ...stream, tenant };
    }

    it('goes on as if nothing had happened, and is charged once', async () => {
      other.provider.change({ chunks: 60, chunk_ms: 50, tokens: 60 });
      // More than a request may take beyond its tenant's credits.
      const { read, ended, requestId, tenant } = await begin('A long story. '.repeat(100));
      const { tag, account, cancelled, incarnation } = other.keyspace.shard(0);
      // Its record, body, text and job, the book of its tenant, and what says that nothing was lost.
      await other.redis.del(incarnation, account(tenant), ...(await other.redis.keys(`${tag}*${requestId}`)));

      // Its worker renews its lease at once.
      await other.redis.publish(cancelled, requestId);
      const version = async () => (await other.redis.hget(account(tenant), 'version')) ?? undefined;
      // That of its grant: its charge would make it the second.
      expect(await waitFor(version, 'the book')).toBe('1');
      await ended;

      expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
      expect(seqsOf(read)).toEqual(seqsOf(read).map((_, index) => index + 1));
      const charges = await waitFor(async () => {
        const found = await other.models.ledger.find({ tenantId: tenant, type: 'usage' }).lean();
        return found.length > 0 ? found : undefined;
      }, 'its charge');
      expect(charges).toMatchObject([{ requestId, completionTokens: 60 }]);
    });

    it('ends with the typed error, numbered on, and without [DONE], where its worker has stopped', async () => {
      other.provider.change({ chunks: 400, chunk_ms: 50, tokens: 400 });
      const { ended, requestId } = await begin();
      const keys = other.keyspace.shard(0);
      // The tombstone stops the worker.
      await other.redis
        .multi()
        .del(keys.record(requestId), keys.stream(requestId))
        .hset(keys.record(requestId), 'state', 'void')
        .exec();

      const read = await ended;

      expect(read).toMatchObject({ finishReason: 'error', errorCode: 'model_unavailable', isDone: false });
      expect(seqsOf(read)).toEqual(seqsOf(read).map((_, index) => index + 1));
    });
  });

  describe('whose worker finds Redis later than its ingress', () => {
    const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
    const direct = useStarted('client', () => openTestRedis('worker'));
    const other = useService({ env: { QUEUE_SHARDS: '1' }, workers: 0 });
    beforeAll(async () => {
      await other.startWorker({ REDIS_URL: proxy.url });
    });

    it('costs nothing, because its caller was told that it is lost', async () => {
      other.provider.change({ chunks: 60, chunk_ms: 50, tokens: 60 });
      const { tenantId: tenant, key: otherKey } = await other.startTenant();
      await ledgerOf(other, await postChat(other.app, otherKey, chatOf('Before')));
      const { tag } = other.keyspace.shard(0);
      const before = await snapshotOf(direct, tag);
      const { read, ended } = await openStream(other.url, otherKey, chatOf('A long story'));
      await waitUntil(() => read.text.length > 0, 'the first text');

      await rollBackTo(before, { redis: direct, tag, proxy }, () => ended);
      expect(read).toMatchObject({ finishReason: 'error', errorCode: 'model_unavailable', isDone: false });
      // The worker is back when this has ended, and has told Redis before what it had to tell.
      const after = await postChat(other.app, otherKey, chatOf('After'));
      await ledgerOf(other, after);

      const charged = await other.models.ledger.find({ tenantId: tenant, type: 'usage' }).sort({ createdAt: 1 }).lean();
      expect(charged).toHaveLength(2);
      expect(charged.at(-1)?.requestId).toBe(requestIdOf(after));
    });
  });
});
