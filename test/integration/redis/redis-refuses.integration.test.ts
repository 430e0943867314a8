import { setTimeout as pause } from 'node:timers/promises';

import { expect, it } from '@jest/globals';

import { openOwnNode } from '../../support/redis/own-servers.ts';
import { withClient } from '../../support/redis/redis-nodes.ts';
import { chatOf, errorOf, postChat, waitUntil } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import { answersAll } from '../../support/shards.ts';
import { useService, useStarted, useTenant } from '../../support/use-service.ts';

const REFUSED_MS = 2_000;
/** docs/spec.md#lost-masters. */
const BACK_WITHIN_MS = 15_000;

const node = useStarted('node', openOwnNode);
const service = useService(() => ({ env: { REDIS_URL: node.url }, workers: 2 }));
const tenant = useTenant(service);

/** With no replica connected, 1 makes the server refuse every write. */
const needReplicas = (count: number) =>
  withClient(node.url, (client) => client.config('SET', 'min-replicas-to-write', String(count)));

it('what runs goes on after a master has refused all writes for want of replicas', async () => {
  service.provider.change({ chunks: 40, chunk_ms: 100 });
  const streams = await Promise.all(Array.from({ length: 5 }, () => openStream(service.url, tenant.key, chatOf('Hi'))));
  const completes = Array.from({ length: 3 }, () =>
    postChat(service.app, tenant.key, chatOf('Hi')).then((answer) => answer),
  );
  await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text');
  // What is not accepted yet would be refused.
  await waitUntil(() => service.provider.stats().calls >= streams.length + completes.length, 'all calls');

  await needReplicas(1);
  const refused = await postChat(service.app, tenant.key, chatOf('Hi'));
  await pause(REFUSED_MS);
  await needReplicas(0);
  service.provider.restore();
  await waitUntil(async () => await answersAll(service, [tenant]), 'an answer', BACK_WITHIN_MS);

  expect(refused.status).toBe(503);
  expect(errorOf(refused)).toMatchObject({ code: 'model_unavailable' });
  for (const { ended } of streams) expect(await ended).toMatchObject({ finishReason: 'stop', isDone: true });
  const answers = await Promise.all(completes);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const requestIds = [...streams.map(({ requestId }) => requestId), ...answers.map(({ body }) => String(body.id))];
  await waitUntil(
    async () => (await service.models.ledger.countDocuments({ requestId: { $in: requestIds } })) === requestIds.length,
    'settlement',
  );
});
