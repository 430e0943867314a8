import { afterEach, describe, expect, it } from '@jest/globals';

import { bucketOf, emptyTally } from '../../../shared/domain/job-tally.ts';
import { createQueueHistory, DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/redis/stores/queue-history.ts';
import type { HistoryKey } from '../../../shared/redis/stores/queue-history.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useAdmin, useService } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

interface Point {
  ts: number;
  value: number;
}

const NAME = 'shard-1.interactive';

describe('the charts of the board', () => {
  const admin = useAdmin();
  afterEach(async () => {
    expect(admin.errors).toEqual([]);
    // Each test has days of its own.
    admin.clock.advance(200 * DAY_MS);
    await Promise.resolve();
  });
  const place = (): HistoryKey => ({ prefix: admin.keyspace.shard(1).tag, queue: 'interactive' });
  const add = (ago: number, ended: { completed?: number; failed?: number; waitedMs?: number; ranMs?: number }) => {
    const { completed = 0, failed = 0, waitedMs = 1, ranMs = 1 } = ended;
    const count = completed + failed;
    const durations = { waited: new Map([[bucketOf(waitedMs), count]]), ran: new Map([[bucketOf(ranMs), count]]) };
    const time = admin.clock.now() - ago;
    return createQueueHistory(admin.redis).add(place(), time, { ...emptyTally(), completed, failed, ...durations });
  };
  const board = async (path: string) => (await admin.call('get', `/admin/queues/api/${path}`)).body;
  const range = (days: number) => `from=${admin.clock.now() - days * DAY_MS}&to=${admin.clock.now()}`;

  it('show each of the last sixty minutes of a queue', async () => {
    await add(0, { completed: 4 });
    await add(MINUTE_MS, { completed: 7, failed: 2 });
    await add(59 * MINUTE_MS, { completed: 1 });
    await add(62 * MINUTE_MS, { completed: 100 });
    const { completed, failed } = await board(`queues/${NAME}/metrics`);
    expect((completed.data as number[]).slice(0, 3)).toEqual([7, 0, 0]);
    expect([completed.data[58], completed.count]).toEqual([1, 60]);
    // What the board shows of the running minute is the difference.
    expect(completed.meta).toEqual({ count: 12, prevCount: 8, prevTS: admin.clock.now() });
    expect(failed).toMatchObject({ meta: { count: 2, prevCount: 2 } });
    expect((await board('queues/shard-0.interactive/metrics')).completed.meta.count).toBe(0);
  });

  it('show what ended on each day, of one queue and of all', async () => {
    await add(0, { completed: 5, failed: 1 });
    await add(2 * DAY_MS, { completed: 3 });
    await add(95 * DAY_MS, { completed: 50 });
    for (const queue of ['', `&queue=${NAME}`]) {
      const { completed, failed } = await board(`metrics/history?${range(90)}&granularity=day${queue}`);
      expect((completed as Point[]).map(({ value }) => value)).toEqual([3, 0, 5]);
      expect((failed as Point[]).at(-1)).toEqual({ ts: Math.floor(admin.clock.now() / DAY_MS) * DAY_MS, value: 1 });
    }
    expect((await board(`metrics/history?${range(90)}&queue=compliance`)).completed).toEqual([]);
  });

  it('show how long jobs waited and ran, by hour, by day and over all', async () => {
    await add(0, { completed: 90, waitedMs: 3, ranMs: 400 });
    await add(0, { completed: 10, waitedMs: 8_000, ranMs: 400 });
    for (const [granularity, unit] of [
      ['hour', HOUR_MS],
      ['day', DAY_MS],
    ] as const) {
      const waits = await board(`metrics/latency?metric=waittime&${range(7)}&granularity=${granularity}`);
      expect(waits).toHaveLength(1);
      expect(waits[0]).toMatchObject({ ts: Math.floor(admin.clock.now() / unit) * unit, count: 100 });
      expect(waits[0].values['50']).toBeLessThanOrEqual(5);
      expect(waits[0].values['95']).toBeGreaterThan(5_000);
    }
    const [runs] = await board(`metrics/latency?metric=runtime&${range(7)}&granularity=range&percentiles=50`);
    expect(Object.keys(runs.values)).toEqual(['50']);
    expect(runs.values['50']).toBeGreaterThan(200);
    expect((await board(`metrics/history?${range(7)}&metric=queueage`)).queueage[0].value).toBe(10_000);
  });

  it('answer at once, whatever time is asked for', async () => {
    await add(0, { completed: 1 });
    const { completed } = await board('metrics/history?from=-1e300&to=1e300&granularity=hour');
    expect(completed).toEqual([{ ts: Math.floor(admin.clock.now() / HOUR_MS) * HOUR_MS, value: 1 }]);
  });

  it('are shown: on the page of each queue and on a page of their own', async () => {
    const { text } = await admin.call('get', '/admin/queues');
    const [, config = '{}'] = /<script id="__UI_CONFIG__"[^>]*>\s*(.*?)\s*<\/script>/s.exec(text) ?? [];
    expect(JSON.parse(config)).toMatchObject({ showMetrics: true, hasHistoryProvider: true, hasLatencyHistory: true });
  });

  it('stay in Redis for as long as the board can show them', async () => {
    await add(0, { completed: 1 });
    const day = Math.floor(admin.clock.now() / DAY_MS);
    const key = `${place().prefix}:interactive:history:hours:${day}`;
    expect(await admin.redis.ttl(key)).toBeGreaterThan(90 * 86_400);
  });
});

describe('a worker', () => {
  const service = useService({ workers: 0 });

  it('counts what it ends in every queue, with its wait and its time', async () => {
    const startedAt = Date.now();
    await service.setTargets('oloid', [
      { provider: 'simulated', model: 'sim?fail=status&status=400', context_window: 8_000 },
    ]);
    const worker = await service.startWorker();
    const { key } = await service.startTenant();
    const api = apiOf(service, key);
    expect((await postChat(service.app, key, chatOf('Hello'))).status).toBe(200);
    expect((await postChat(service.app, key, chatOf('Hello', { model: 'oloid' }))).status).toBeGreaterThanOrEqual(400);
    const { body: job } = await api('post', '/compliance/exports', { scope: 'tenant' });
    await waitFor(async () => {
      const { body } = await api('get', `/compliance/exports/${String(job.id)}`);
      return body.status === 'completed' ? true : undefined;
    }, 'the export');
    await worker.close();

    const history = createQueueHistory(service.redis);
    const endedIn = async (prefix: string, queue: string) => {
      const hours = await history.hours({ prefix, queue }, startedAt, Date.now());
      return [...hours.values()];
    };
    const [chat] = await endedIn(service.keyspace.shard(0).tag, 'interactive');
    expect(chat).toMatchObject({ completed: 1, failed: 1 });
    expect([...(chat?.waited.values() ?? [])].reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(await endedIn(service.keyspace.compliance, 'compliance')).toMatchObject([{ completed: 1, failed: 0 }]);
  }, 60_000);
});
