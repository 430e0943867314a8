import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import type { RunningWorker } from '../../support/service.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** Within 10 s it has given up its leases; then whoever stands by asks again, and this machine is slow. */
const LIMIT_MS = 15_000;
const TASKS = ['settle', 'sweep', 'batches', 'notices'];

describe.each(['reset', 'silent'] as const)('a worker that alone has lost MongoDB (%s)', (how) => {
  let worker: RunningWorker;
  const service = useService({ workers: 0 });
  const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(service.mongo.name)));
  beforeAll(async () => {
    worker = await service.startWorker({ MONGODB_URI: mongo.url });
  });
  afterAll(() => {
    mongo.set('pass');
  });

  const leaders = () => Promise.all(TASKS.map((task) => service.redis.get(service.keyspace.shard(0).lease(task))));
  const ended = async () => {
    const counts = (await worker.metrics()).matchAll(/^parley_requests_total\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  };

  it('gives up what it leads and takes no requests, which are served and booked by the others', async () => {
    const { key, tenantId } = await service.startTenant();
    const first = await waitFor(async () => {
      const [one, ...others] = await leaders();
      return one !== null && others.every((other) => other === one) ? one : undefined;
    }, 'it to lead everything');
    await service.startWorker();
    mongo.set(how);

    await waitUntil(async () => !(await leaders()).includes(first), 'its leases', LIMIT_MS);
    // BullMQ still hands out the one job for which it waited when it was paused.
    await postChat(service.app, key, chatOf('Hi'));
    await postChat(service.app, key, chatOf('Hi'));
    const before = await ended();
    for (let count = 0; count < 10; count += 1)
      expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    const charges = () => service.models.ledger.countDocuments({ tenantId, type: 'usage' });
    await waitUntil(async () => (await charges()) === 12, 'the charges', LIMIT_MS);

    expect(await ended()).toBe(before);
    // It leads nothing for a while, but takes requests again.
    mongo.set('pass');
    const served = async () => {
      await postChat(service.app, key, chatOf('Hi'));
      return (await ended()) > before ? true : undefined;
    };
    expect(await waitFor(served, 'it to take requests again', LIMIT_MS)).toBe(true);
  });
});
