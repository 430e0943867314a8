import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { openOwnNode, openOwnSentinels } from '../../support/redis/own-servers.ts';
import { withClient } from '../../support/redis/redis-nodes.ts';
import { itemsOf, postLines } from '../../support/batch-client.ts';
import { LOCALHOST, trustLocalhost } from '../../support/certificates.ts';
import { chatOf, waitUntil } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import type { OpenStream } from '../../support/stream-client.ts';
import { answersAll } from '../../support/shards.ts';
import { openTestRedis } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useStarted, useTenant } from '../../support/use-service.ts';

/** Of a batch of a few lines, on a machine that is busy with other tests. */
const BATCH_MS = 30_000;
const BACK_WITHIN_MS = 15_000;

describe('under Sentinel, over TLS with a password, and another one of the sentinels', () => {
  let distrust: () => void;
  beforeAll(() => {
    distrust = trustLocalhost();
  });
  const group = useStarted('group', () =>
    openOwnSentinels({ password: 'a pass/word', sentinelPassword: 'an&other=one', tls: LOCALHOST }),
  );
  const service = useService(() => ({ env: { REDIS_URL: group.url, REDIS_SENTINEL_PASSWORD: 'an&other=one' } }));
  const tenant = useTenant(service);
  afterAll(() => {
    distrust();
  });

  async function openStreams(): Promise<OpenStream[]> {
    service.provider.change({ chunks: 60, chunk_ms: 100 });
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => openStream(service.url, tenant.key, chatOf('Hi'))),
    );
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text');
    service.provider.restore();
    return streams;
  }

  async function expectWhole(streams: readonly OpenStream[]): Promise<void> {
    for (const { ended } of streams) expect(await ended).toMatchObject({ finishReason: 'stop', isDone: true });
  }

  const untilAnswers = () => waitUntil(async () => await answersAll(service, [tenant]), 'answers', BACK_WITHIN_MS);

  it('serves again within 15 s of the kill of the master, its queues included', async () => {
    const streams = await openStreams();
    const master = await group.master();

    master.process().kill();
    const killedAt = performance.now();
    await untilAnswers();

    expect(performance.now() - killedAt).toBeLessThan(BACK_WITHIN_MS);
    await expectWhole(streams);
    const { body: batch } = await postLines(service, tenant.key, itemsOf(3));
    await waitUntil(
      async () => (await apiOf(service, tenant.key)('get', `/batches/${String(batch.id)}`)).body.status === 'completed',
      'the batch',
      BATCH_MS,
    );
    await waitUntil(
      async () =>
        (await service.models.ledger.countDocuments({
          requestId: { $in: streams.map(({ requestId }) => requestId) },
        })) === streams.length,
      'settlement',
    );
  }, 90_000);

  it('loses nothing by a planned fail-over amid streams', async () => {
    const streams = await openStreams();

    await group.failOver();
    await untilAnswers();

    await expectWhole(streams);
  }, 90_000);
});

it('a command that a server refuses because it has become a replica is sent again, and not failed', async () => {
  const node = await openOwnNode();
  const client = await openTestRedis('worker', node.url);
  await withClient(node.url, (other) => other.call('REPLICAOF', '127.0.0.1', '1'));

  const written = client.set('key', 'value');
  await pause(300);
  await withClient(node.url, (other) => other.call('REPLICAOF', 'NO', 'ONE'));

  await expect(written).resolves.toBe('OK');
  client.disconnect();
  await node.close();
});
