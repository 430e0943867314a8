import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { startNode, withClient } from '../../support/redis/redis-nodes.ts';
import type { RedisNode } from '../../support/redis/redis-nodes.ts';
import { chatOf, errorOf, postChat, waitFor } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import { startService } from '../../support/service.ts';
import type { TestService, TestTenant } from '../../support/service.ts';
import { answersAll } from '../../support/shards.ts';

const START_MS = 40_000;
const REFUSED_MS = 2_000;
/** docs/spec.md#lost-masters. */
const BACK_WITHIN_MS = 15_000;

let dataDir: string;
let node: RedisNode;
let service: TestService;
let tenant: TestTenant;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-refuses-'));
  node = await startNode('node', { dataDir }, () => ({}));
  service = await startService({ env: { REDIS_URL: node.url }, workers: 2 });
  tenant = await service.startTenant();
}, START_MS);
afterAll(async () => {
  await service.close();
  await node.process().stop();
  await rm(dataDir, { recursive: true, force: true });
}, START_MS);

/** With no replica connected, 1 makes the server refuse every write. */
const needReplicas = (count: number) =>
  withClient(node.url, (client) => client.config('SET', 'min-replicas-to-write', String(count)));

it('what runs goes on after a master has refused all writes for want of replicas', async () => {
  service.provider.change({ chunks: 40, chunk_ms: 100 });
  const streams = await Promise.all(Array.from({ length: 5 }, () => openStream(service.url, tenant.key, chatOf('Hi'))));
  const completes = Array.from({ length: 3 }, () =>
    postChat(service.app, tenant.key, chatOf('Hi')).then((answer) => answer),
  );
  await waitFor(() => streams.every(({ read }) => read.text !== '') || undefined, 'text');
  // What is not accepted yet would be refused.
  await waitFor(() => service.provider.stats().calls >= streams.length + completes.length || undefined, 'all calls');

  await needReplicas(1);
  const refused = await postChat(service.app, tenant.key, chatOf('Hi'));
  await pause(REFUSED_MS);
  await needReplicas(0);
  service.provider.restore();
  await waitFor(async () => (await answersAll(service, [tenant])) || undefined, 'an answer', BACK_WITHIN_MS);

  expect(refused.status).toBe(503);
  expect(errorOf(refused)).toMatchObject({ code: 'model_unavailable' });
  for (const { ended } of streams) expect(await ended).toMatchObject({ finishReason: 'stop', isDone: true });
  const answers = await Promise.all(completes);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const requestIds = [...streams.map(({ requestId }) => requestId), ...answers.map(({ body }) => String(body.id))];
  await waitFor(
    async () =>
      (await service.models.ledger.countDocuments({ requestId: { $in: requestIds } })) === requestIds.length ||
      undefined,
    'settlement',
  );
}, 60_000);
