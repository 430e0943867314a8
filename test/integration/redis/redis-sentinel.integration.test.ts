import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { startNode, withClient } from '../../support/redis/redis-nodes.ts';
import { startSentinels } from '../../support/redis/redis-sentinel.ts';
import type { SentinelGroup } from '../../support/redis/redis-sentinel.ts';
import { itemsOf, postLines } from '../../support/batch-client.ts';
import { LOCALHOST, trustLocalhost } from '../../support/certificates.ts';
import { chatOf, waitFor } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import type { OpenStream } from '../../support/stream-client.ts';
import { startService } from '../../support/service.ts';
import type { TestService, TestTenant } from '../../support/service.ts';
import { answersAll } from '../../support/shards.ts';
import { openTestRedis } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';

const START_MS = 40_000;
/** Of a batch of a few lines, on a machine that is busy with other tests. */
const BATCH_MS = 30_000;
const BACK_WITHIN_MS = 15_000;

describe('under Sentinel, over TLS with a password, and another one of the sentinels', () => {
  let dataDir: string;
  let group: SentinelGroup;
  let service: TestService;
  let tenant: TestTenant;
  let distrust: () => void;

  beforeAll(async () => {
    distrust = trustLocalhost();
    dataDir = await mkdtemp(join(tmpdir(), 'parley-sentinel-'));
    group = await startSentinels({
      dataDir,
      password: 'a pass/word',
      sentinelPassword: 'an&other=one',
      tls: LOCALHOST,
    });
    service = await startService({ env: { REDIS_URL: group.url, REDIS_SENTINEL_PASSWORD: 'an&other=one' } });
    tenant = await service.startTenant();
  }, START_MS);
  afterAll(async () => {
    await service.close();
    await group.stop();
    await rm(dataDir, { recursive: true, force: true });
    distrust();
  }, START_MS);

  async function openStreams(): Promise<OpenStream[]> {
    service.provider.change({ chunks: 60, chunk_ms: 100 });
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => openStream(service.url, tenant.key, chatOf('Hi'))),
    );
    await waitFor(() => streams.every(({ read }) => read.text !== '') || undefined, 'text');
    service.provider.restore();
    return streams;
  }

  async function expectWhole(streams: readonly OpenStream[]): Promise<void> {
    for (const { ended } of streams) expect(await ended).toMatchObject({ finishReason: 'stop', isDone: true });
  }

  const untilAnswers = () =>
    waitFor(async () => (await answersAll(service, [tenant])) || undefined, 'answers', BACK_WITHIN_MS);

  it('serves again within 15 s of the kill of the master, its queues included', async () => {
    const streams = await openStreams();
    const master = await group.master();

    master.process().kill();
    const killedAt = performance.now();
    await untilAnswers();

    expect(performance.now() - killedAt).toBeLessThan(BACK_WITHIN_MS);
    await expectWhole(streams);
    const { body: batch } = await postLines(service, tenant.key, itemsOf(3));
    await waitFor(
      async () =>
        (await apiOf(service, tenant.key)('get', `/batches/${String(batch.id)}`)).body.status === 'completed' ||
        undefined,
      'the batch',
      BATCH_MS,
    );
    await waitFor(
      async () =>
        (await service.models.ledger.countDocuments({
          requestId: { $in: streams.map(({ requestId }) => requestId) },
        })) === streams.length || undefined,
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
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-readonly-'));
  const node = await startNode('node', { dataDir }, () => ({}));
  const client = await openTestRedis('worker', node.url);
  await withClient(node.url, (other) => other.call('REPLICAOF', '127.0.0.1', '1'));

  const written = client.set('key', 'value');
  await pause(300);
  await withClient(node.url, (other) => other.call('REPLICAOF', 'NO', 'ONE'));

  await expect(written).resolves.toBe('OK');
  client.disconnect();
  await node.process().stop();
  await rm(dataDir, { recursive: true, force: true });
});
