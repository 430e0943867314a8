import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What `/admin/v1/queues` says of a queue. */
export interface QueueFigures {
  lane: string;
  shard: number;
  waiting: number;
  active: number;
  oldest_age_seconds: number;
  drain_rate_per_second: number;
}

export interface QueueGauges {
  /** Every queue of every shard. */
  queues: () => Promise<readonly QueueFigures[]>;
  /** Requests that one worker runs at once. */
  workerConcurrency: number;
}

/** Gauges are read one by one, for one page: they share one look at Redis. */
const FRESH_MS = 1_000;
/** Workers are to have so much of their places in use: what comes in bursts finds one free. */
const USE = 0.8;

/** How many workers would have a place for everything that waits or runs: for autoscalers. At least one. */
export function workersWanted(queues: readonly QueueFigures[], workerConcurrency: number): number {
  const requests = queues.reduce((sum, { waiting, active }) => sum + waiting + active, 0);
  return Math.max(1, Math.ceil(requests / (workerConcurrency * USE)));
}

/**
 * Gauges of the queues' length, age and speed, the same on every ingress. While Redis is away they show nothing, rather
 * than an old figure.
 */
export function gaugeQueues(registers: Registry[], { queues, workerConcurrency }: QueueGauges): void {
  let read: Promise<readonly QueueFigures[]> | undefined;
  let readAt = 0;

  function figures(): Promise<readonly QueueFigures[]> {
    const now = performance.now();
    if (read === undefined || now - readAt > FRESH_MS) {
      readAt = now;
      read = queues().catch(() => []);
    }
    return read;
  }

  const gauge = (name: string, help: string, value: (figures: QueueFigures) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['queue', 'shard'],
      registers,
      async collect() {
        this.reset();
        for (const each of await figures()) this.set({ queue: each.lane, shard: String(each.shard) }, value(each));
      },
    });
  gauge('parley_queue_waiting', 'Requests that wait for a worker.', ({ waiting }) => waiting);
  gauge('parley_queue_active', 'Requests that workers run.', ({ active }) => active);
  gauge(
    'parley_queue_oldest_seconds',
    'For how long the request that is served next has waited.',
    ({ oldest_age_seconds: age }) => age,
  );
  gauge('parley_queue_drain_rate', 'Requests that end a second, of late.', ({ drain_rate_per_second: rate }) => rate);
  new Gauge({
    name: 'parley_workers_wanted',
    help: 'Workers that would have a place for every request that waits or runs.',
    registers,
    async collect() {
      this.set(workersWanted(await figures(), workerConcurrency));
    },
  });
}
