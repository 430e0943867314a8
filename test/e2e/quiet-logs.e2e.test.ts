import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitFor, waitUntil } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { ApiProcess, Fleet, WorkerProcess } from '../support/fleet.ts';
import { openStream, post } from '../support/stream-client.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';

const AWAY_MS = 10_000;
const CALLS_PER_SECOND = 100;
const BYTES_MAX = 20_000;

type Line = Record<string, unknown>;

describe('the log of a process whose Redis is away', () => {
  let fleet: Fleet;
  let proxy: TcpProxy;
  let api: ApiProcess;
  let worker: WorkerProcess;
  let key: string;
  beforeAll(async () => {
    fleet = await openFleet();
    ({ liveKey: key } = await fleet.startTenant(1_000_000));
    proxy = await openTcpProxy(fleet.redis.url);
    api = await fleet.startApi({ REDIS_URL: proxy.url });
    worker = await fleet.startWorker({ REDIS_URL: proxy.url });
    await fleet.changeProvider({ chunks: 40, chunk_ms: 100 });
  }, 60_000);
  afterAll(async () => {
    await proxy.close();
    await fleet.close();
  });

  async function callDuring(ms: number): Promise<number[]> {
    const calls: Promise<number>[] = [];
    const until = performance.now() + ms;
    const startedAt = performance.now();
    while (performance.now() < until) {
      const due = ((performance.now() - startedAt) * CALLS_PER_SECOND) / 1_000;
      while (calls.length < due)
        calls.push(
          post(api.url, key, '/chat', chatOf('Hello')).then(async (response) => {
            await response.body?.cancel();
            return response.status;
          }),
        );
      await pause(10);
    }
    return Promise.all(calls);
  }

  it.each([
    [
      'cut off',
      () => {
        proxy.set('refuse');
      },
    ],
    [
      'silent',
      () => {
        proxy.set('silent');
      },
    ],
  ])(
    'has one line for its loss and one for its return, with the number of refused calls: %s',
    async (_how, take) => {
      const streams = await Promise.all(
        Array.from({ length: 20 }, (_, index) => openStream(api.url, key, chatOf(`Stream ${index}`))),
      );
      await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text of every stream');
      const from = { api: api.stdout().length, worker: worker.stdout().length };
      const saidBy = { api: () => api.stdout().slice(from.api), worker: () => worker.stdout().slice(from.worker) };
      const linesOf = (name: 'api' | 'worker') =>
        saidBy[name]()
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as Line);

      take();
      const statuses = await callDuring(AWAY_MS);
      proxy.set('pass');
      const isBack = (name: 'api' | 'worker') => (saidBy[name]().includes('Redis answers again.') ? true : undefined);
      await waitFor(() => isBack('api') && isBack('worker'), 'both to say that Redis is back', 20_000);
      await Promise.all(streams.map(({ ended }) => ended));

      for (const name of ['api', 'worker'] as const) {
        const lines = linesOf(name);
        expect(lines.filter(({ message }) => message === 'Redis does not answer.')).toHaveLength(1);
        expect(lines.filter(({ message }) => message === 'Redis answers again.')).toHaveLength(1);
        expect(saidBy[name]()).not.toContain('    at ');
        expect(saidBy[name]().length).toBeLessThan(BYTES_MAX);
      }
      const refused = statuses.filter((status) => status === 503).length;
      expect(linesOf('api').find(({ message }) => message === 'Redis answers again.')).toMatchObject({ refused });
    },
    90_000,
  );
});
