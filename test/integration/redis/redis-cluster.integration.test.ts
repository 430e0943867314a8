import { beforeAll, describe, expect, it } from '@jest/globals';

import { openOwnCluster } from '../../support/redis/own-servers.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { itemsOf, postLines, resultsOf } from '../../support/batch-client.ts';
import { chatOf, parseSse, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { jobOf } from '../../support/compliance.ts';
import { openStream, seqsOf } from '../../support/stream-client.ts';
import { moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import { answersAll, tenantsByShard } from '../../support/shards.ts';
import type { ShardTenant } from '../../support/shards.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

/** Three masters, and a shard on each of them. */
const SHARDS = 3;
/** Of a batch of a few lines, on a machine that is busy with other tests. */
const BATCH_MS = 30_000;
const BACK_WITHIN_MS = 15_000;

describe('on Redis Cluster', () => {
  let tenants: ShardTenant[];
  const cluster = useStarted('cluster', openOwnCluster);
  const service = useService(() => ({
    env: { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS), WEBHOOK_ALLOW_PRIVATE: 'true' },
  }));
  beforeAll(async () => {
    tenants = await tenantsByShard(service, SHARDS);
  });

  const tagOf = (shard: number) => service.keyspace.shard(shard).tag;
  /** Does something with every tenant at the same time, so that scripts for several masters leave in one turn. */
  const forEach = <Result>(task: (tenant: ShardTenant) => Promise<Result>) => Promise.all(tenants.map(task));

  it('sends scripts of one turn to several masters', async () => {
    const masters = await forEach(async ({ shard }) => (await cluster.masterOf(tagOf(shard))).name);
    expect(new Set(masters).size).toBeGreaterThan(1);
    const accounts = createAccountStore(service.redis, service.keyspace);

    await expect(forEach(({ shard, tenantId }) => accounts.read(shard, tenantId, '202611'))).resolves.toBeDefined();
  });

  it('moves a tenant to a shard on another master, with its answers and limits', async () => {
    const { tenantId, keyId, key } = await service.startTenant({ key: { daily_requests: 100 } });
    const from = await shardOf(service, tenantId);
    const masters = await forEach(async ({ shard }) => (await cluster.masterOf(tagOf(shard))).name);
    const to = masters.findIndex((name) => name !== masters[from]);
    const { body: first } = await postChat(service.app, key, chatOf('Hi'));

    const moved = await moveWhenIdle(service, tenantId, to);

    expect(moved.body).toMatchObject({ shard: to });
    const found = await apiOf(service, key)('get', `/chat/${String(first.id)}`);
    expect(found.body).toMatchObject({ status: 'completed', response: first });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    expect(await service.redis.hget(service.keyspace.shard(to).daily(keyId), 'total')).toBe('2');
    expect(await service.redis.get(service.keyspace.shard(from).blocked(tenantId))).toBe(`moved ${to}`);
  });

  it('answers requests of all masters that come at once, and books them', async () => {
    const answers = await forEach(({ key }) =>
      Promise.all(Array.from({ length: 12 }, () => postChat(service.app, key, chatOf('Hi')))),
    );

    expect(answers.flat().map(({ status }) => status)).toEqual(Array.from({ length: SHARDS * 12 }, () => 200));
    await forEach(({ tenantId }) =>
      waitUntil(
        async () => (await service.models.ledger.countDocuments({ tenantId, type: 'usage' })) === 12,
        `the settlement of ${tenantId}`,
      ),
    );
  });

  it('streams as the text comes, by sharded channels, and reads a stream again byte for byte', async () => {
    service.provider.change({ chunks: 10, chunk_ms: 30 });
    const streams = await forEach(async ({ key }) => ({ key, live: await openStream(service.url, key, chatOf('Hi')) }));
    const ended = await Promise.all(streams.map(async ({ key, live }) => ({ key, live, read: await live.ended })));
    service.provider.restore();

    for (const { key, live, read } of ended) {
      expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
      // A poll of the stream alone would bring it once a second.
      expect(seqsOf(read).length).toBeGreaterThan(5);
      const again = await apiOf(service, key)('get', `/chat/stream/${live.requestId}`);
      expect(parseSse(again.text).map(({ id }) => id)).toEqual(seqsOf(read));
    }
  });

  it('cancels a running request at once', async () => {
    service.provider.change({ chunks: 200, chunk_ms: 50 });
    await forEach(async ({ key }) => {
      const live = await openStream(service.url, key, chatOf('Hi'));
      await waitUntil(() => live.read.text !== '', 'text');
      const { status } = await apiOf(service, key)('post', `/chat/${live.requestId}/cancel`);
      expect(status).toBe(200);
      expect(await live.ended).toMatchObject({ isDone: true });
    });
    service.provider.restore();
  });

  it('runs batches, tells webhooks, exports and deletes', async () => {
    const receiver = await startWebhookReceiver();
    await forEach(async ({ key }) => {
      const api = apiOf(service, key);
      await api('post', '/webhooks', { url: receiver.url, events: ['batch.completed'] });
      const { body: batch } = await postLines(service, key, itemsOf(5));
      await waitUntil(
        async () => (await api('get', `/batches/${String(batch.id)}`)).body.status === 'completed',
        'the batch',
        BATCH_MS,
      );
      expect(await resultsOf(service, key, String(batch.id))).toHaveLength(5);
      await postChat(service.app, key, chatOf('Remember me', { entity_id: 'pupil' }));
      const asked = await api('post', '/compliance/exports', { scope: 'entity', entity_id: 'pupil' });
      expect(await jobOf(api, 'exports', String(asked.body.id))).toMatchObject({ status: 'completed' });
      const deleted = await api('post', '/compliance/deletions', { scope: 'entity', entity_id: 'pupil' });
      expect(await jobOf(api, 'deletions', String(deleted.body.id))).toMatchObject({ status: 'completed' });
    });
    await receiver.next('batch.completed', SHARDS);
    await receiver.close();
  }, 90_000);

  it('loses nothing by a planned fail-over amid streams', async () => {
    service.provider.change({ chunks: 40, chunk_ms: 50 });
    const streams = await forEach(({ key }) => openStream(service.url, key, chatOf('Hi')));
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text');
    await cluster.promoteReplicaOf(tagOf(0));
    const ended = await Promise.all(streams.map(({ ended }) => ended));
    service.provider.restore();

    for (const read of ended) expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
    expect(await answersAll(service, tenants)).toBe(true);
  });

  it('serves every tenant again within 15 s of the kill of a master, its queues included', async () => {
    service.provider.change({ chunks: 60, chunk_ms: 100 });
    const streams = await forEach(({ key }) => openStream(service.url, key, chatOf('Hi')));
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text');
    service.provider.restore();
    const master = await cluster.masterOf(tagOf(1));

    master.process().kill();
    const killedAt = performance.now();
    await waitFor(() => answersAll(service, tenants).then((all) => all || undefined), 'answers', BACK_WITHIN_MS);

    expect(performance.now() - killedAt).toBeLessThan(BACK_WITHIN_MS);
    for (const [index, { ended, requestId }] of streams.entries()) {
      const read = await ended;
      expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
      // What the replica had not got yet has been appended to it again.
      const again = await apiOf(service, tenants[index]?.key ?? '')('get', `/chat/stream/${requestId}`);
      expect(parseSse(again.text).map(({ id }) => id)).toEqual(seqsOf(read));
    }
    const [first] = tenants;
    const { body: batch } = await postLines(service, first?.key ?? '', itemsOf(3));
    await waitUntil(
      async () =>
        (await apiOf(service, first?.key ?? '')('get', `/batches/${String(batch.id)}`)).body.status === 'completed',
      'the batch',
      BATCH_MS,
    );
  }, 90_000);
});
