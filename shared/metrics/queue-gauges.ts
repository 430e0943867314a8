import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** A queue as `/admin/v1/queues` has it. */
export interface QueueFigures {
  queue: string;
  shard: number;
  waiting: number;
  active: number;
  oldest_age_seconds: number;
  drain_rate_per_second: number;
  /** By an operator, so what waits there asks for no worker. */
  paused: boolean;
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

/**
 * How many workers would have a place for everything that runs or waits for one: for autoscalers. At least one. More workers
 * do nothing for what waits in a paused queue.
 */
export function workersWanted(queues: readonly QueueFigures[], workerConcurrency: number): number {
  const requests = queues.reduce((sum, { waiting, active, paused }) => sum + (paused ? 0 : waiting) + active, 0);
  return Math.max(1, Math.ceil(requests / (workerConcurrency * USE)));
}

/**
 * Gauges of the queues' length, age and speed, the same on every ingress. While Redis is away they show nothing, rather
 * than an old figure.
 */
export function gaugeQueues(registers: Registry[], { queues, workerConcurrency }: QueueGauges): void {
  let read: Promise<readonly QueueFigures[] | undefined> | undefined;
  let readAt = 0;

  function figures(): Promise<readonly QueueFigures[] | undefined> {
    const now = performance.now();
    if (read === undefined || now - readAt > FRESH_MS) {
      readAt = now;
      read = queues().catch(() => undefined);
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
        for (const each of (await figures()) ?? [])
          this.set({ queue: each.queue, shard: String(each.shard) }, value(each));
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
  gauge('parley_queue_paused', '1: an operator has paused the queue, and what waits there is to wait.', ({ paused }) =>
    Number(paused),
  );
  new Gauge({
    name: 'parley_workers_wanted',
    help: 'Workers that would have a place for every request that runs or waits in a queue that is not paused.',
    registers,
    async collect() {
      const known = await figures();
      // The figure is unknown then: an autoscaler that read 1 would take workers away that are wanted when Redis is back.
      if (known === undefined) this.remove();
      else this.set(workersWanted(known, workerConcurrency));
    },
  });
}
