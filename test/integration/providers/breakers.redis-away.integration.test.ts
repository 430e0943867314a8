import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterEach, beforeEach, expect, it } from '@jest/globals';

import { startNode, withClient } from '../../support/redis/redis-nodes.ts';
import { call, failure, openBreakerLab, providerOf, refusal } from '../../support/breaker-lab.ts';
import type { BreakerLab, LabWorker } from '../../support/breaker-lab.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';

let lab: BreakerLab;
let worker: LabWorker;
let proxy: TcpProxy;
beforeEach(async () => {
  lab = await openBreakerLab();
  proxy = await openTcpProxy(redisUrl());
  worker = await lab.startWorker({ url: proxy.url });
});
afterEach(async () => {
  proxy.set('pass');
  await lab.close();
  await proxy.close();
});

it('with Redis away a worker goes on with what it knows, and opens and probes by itself', async () => {
  const provider = providerOf({ openMs: 2_000, maxOpenMs: 4_000 });
  proxy.set('reset');

  await call(worker, provider, 10, failure);
  await waitFor(() => (worker.isPassable(provider) ? undefined : true), 'the worker to open its own breaker');
  expect(await call(worker, provider, 1)).toBe(1);
  await waitUntil(() => worker.isPassable(provider), 'the pause to be over');
  expect(await call(worker, provider, 1)).toBe(0);
  await waitUntil(async () => (await call(worker, provider, 1)) === 0, 'the probe to close it');

  expect(worker.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
});

it('after a cut the worker takes over what the fleet has come to meanwhile', async () => {
  const provider = providerOf({ openMs: 60_000, maxOpenMs: 60_000 });
  const other = await lab.startWorker();
  proxy.set('reset');
  await call(other, provider, 1, refusal);
  await lab.until(provider, ({ state }) => state === 'open', 'the breaker to open');
  expect(await call(worker, provider, 1)).toBe(0);

  proxy.set('pass');

  await waitFor(() => (worker.isPassable(provider) ? undefined : true), 'the worker to hear of it');
});

it('asks a Redis that takes no writes for one change at a time, and keeps what it has decided alone', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-breakers-'));
  const node = await startNode('node', { dataDir }, () => ({}));
  const needReplicas = (count: number) =>
    withClient(node.url, (client) => client.config('SET', 'min-replicas-to-write', String(count)));
  const provider = providerOf({ openMs: 60_000, maxOpenMs: 60_000 });
  const others = [providerOf(), providerOf()];
  const isolated = await lab.startWorker({ url: node.url });
  try {
    await needReplicas(1);
    await call(isolated, provider, 10, failure);
    await waitFor(() => (isolated.isPassable(provider) ? undefined : true), 'the worker to open its own breaker');
    for (let seconds = 0; seconds < 3; seconds += 1) {
      for (const other of others) await call(isolated, other, 1, failure);
      await pause(1_000);
    }

    expect(isolated.changes()).toBe(1);
    expect(isolated.isPassable(provider)).toBe(false);
    expect(isolated.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);

    await needReplicas(0);
    const isShared = () => isolated.log.lines.some(({ level }) => level === 'info');
    await waitUntil(() => isShared(), 'the breakers to be shared again');
  } finally {
    await isolated.stop();
    await node.process().stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}, 30_000);
