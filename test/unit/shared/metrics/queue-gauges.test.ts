import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';

import { gaugeQueues, workersWanted } from '../../../../shared/metrics/ingress-series.ts';
import type { QueueFigures } from '../../../../shared/metrics/ingress-series.ts';

const FIGURES: QueueFigures = {
  queue: 'interactive',
  shard: 2,
  waiting: 30,
  active: 10,
  oldest_age_seconds: 4,
  drain_rate_per_second: 2.5,
  paused: false,
};

async function pageOf(queues: () => Promise<QueueFigures[]>): Promise<string> {
  const registry = new Registry();
  gaugeQueues([registry], { queues, workerConcurrency: 10 });
  return registry.metrics();
}

it.each([
  [0, 0, 0],
  [0, 8, 1],
  [1, 8, 2],
  [32, 8, 5],
])('with %d waiting and %d running requests, %d workers of 10 places are wanted', (waiting, active, wanted) => {
  expect(workersWanted([{ ...FIGURES, waiting, active }], 10)).toBe(wanted);
});

it('what waits in a paused queue wants no worker, what runs there does', () => {
  const paused = { ...FIGURES, waiting: 1_000, active: 9, paused: true };

  expect(workersWanted([paused], 10)).toBe(2);
  expect(workersWanted([paused, { ...FIGURES, shard: 1, waiting: 30, active: 1 }], 10)).toBe(5);
});

it('a paused queue is told apart from one that nobody serves', async () => {
  const page = await pageOf(() => Promise.resolve([FIGURES, { ...FIGURES, shard: 3, paused: true }]));

  expect(page).toContain('parley_queue_paused{queue="interactive",shard="2"} 0');
  expect(page).toContain('parley_queue_paused{queue="interactive",shard="3"} 1');
});

it('one look at the queues serves all gauges of a page', async () => {
  let looks = 0;

  const page = await pageOf(() => {
    looks += 1;
    return Promise.resolve([FIGURES]);
  });

  expect(looks).toBe(1);
  expect(page).toContain('parley_queue_waiting{queue="interactive",shard="2"} 30');
  expect(page).toContain('parley_queue_active{queue="interactive",shard="2"} 10');
  expect(page).toContain('parley_queue_oldest_seconds{queue="interactive",shard="2"} 4');
  expect(page).toContain('parley_queue_drain_rate{queue="interactive",shard="2"} 2.5');
  expect(page).toContain('parley_workers_wanted 5');
});

it('a page is made while Redis is away', async () => {
  const page = await pageOf(() => Promise.reject(new Error('Redis is away')));

  expect(page).not.toContain('parley_queue_waiting{');
  // An autoscaler keeps what it has where it reads nothing; a 1 would take workers away.
  expect(page).not.toMatch(/^parley_workers_wanted/m);
});
