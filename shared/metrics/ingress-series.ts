import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

import { PAYMENT_MISMATCHES } from '../domain/payments.ts';
import {
  gaugeChecks,
  gaugeRows,
  SECONDS_BUCKETS,
  countBreakerChanges,
  createRegistry,
  fromZero,
  metricsPage,
} from './registry.ts';
import type { CheckGauges } from './registry.ts';

/** A queue as `/admin/v1/queues` has it. */
export interface QueueFigures {
  queue: string;
  shard: number;
  waiting: number;
  active: number;
  oldest_age_seconds: number;
  drain_rate_per_second: number;
  /** An operator paused it, so what waits there asks for no worker. */
  paused: boolean;
}

interface QueueGauges {
  /** Every queue of every shard. */
  queues: () => Promise<readonly QueueFigures[]>;
  workerConcurrency: number;
}

/** Gauges are read one by one, for one page: they share one look at Redis. */
const FRESH_MS = 1_000;
/** Workers are to use this share of their places: a burst finds one free. */
const USE = 0.8;

type QueueLoad = Record<'waiting' | 'active', number> & { paused: boolean };

/** Counts workers with a place for all that runs or waits. More of them do nothing for a paused queue. */
export function workersWanted(queues: readonly QueueLoad[], workerConcurrency: number): number {
  const requests = queues.reduce((sum, { waiting, active, paused }) => sum + (paused ? 0 : waiting) + active, 0);
  return Math.ceil(requests / (workerConcurrency * USE));
}

/** The same for all queues; at least 1, because the next request needs a worker. */
export function fleetWanted(queues: readonly QueueLoad[], workerConcurrency: number): number {
  return Math.max(1, workersWanted(queues, workerConcurrency));
}

/** The same on every ingress. While Redis is away the gauges show nothing rather than an old figure. */
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

  function gauge(name: string, help: string, value: (figures: QueueFigures) => number): void {
    gaugeRows(registers, [name, help, 'queue', 'shard'], async () =>
      ((await figures()) ?? []).map((each) => [{ queue: each.queue, shard: String(each.shard) }, value(each)]),
    );
  }
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
      else this.set(fleetWanted(known, workerConcurrency));
    },
  });
}

export type IngressMetrics = ReturnType<typeof createIngressMetrics>;

export interface IngressGauges extends QueueGauges, CheckGauges {
  openReaders: () => number;
  redisMemoryRatio: () => number;
}

function gaugeIngress(registers: Registry[], { openReaders, redisMemoryRatio }: IngressGauges): void {
  new Gauge({
    name: 'parley_open_relays',
    help: 'Requests whose answer this ingress is relaying.',
    registers,
    collect() {
      this.set(openReaders());
    },
  });
  new Gauge({
    name: 'parley_redis_memory_ratio',
    help: "Redis's memory in use as a part of maxmemory, 0 without a limit; above 0.9 new requests are refused.",
    registers,
    collect() {
      this.set(redisMemoryRatio());
    },
  });
}

export function createIngressMetrics(gauges: IngressGauges) {
  const registry = createRegistry('ingress');
  const registers = [registry];
  gaugeQueues(registers, gauges);
  gaugeChecks(registers, gauges);
  gaugeIngress(registers, gauges);
  return {
    page: metricsPage(registry),
    requests: new Counter({
      name: 'parley_http_requests_total',
      help: 'Answered HTTP requests by route and status.',
      labelNames: ['route', 'status'],
      registers,
    }),
    duration: new Histogram({
      name: 'parley_http_request_duration_seconds',
      help: 'From the first byte of a request to the end of its answer.',
      labelNames: ['route'],
      buckets: SECONDS_BUCKETS,
      registers,
    }),
    admissions: fromZero(
      new Counter({
        name: 'parley_admissions_total',
        help: 'Outcomes of the admission script.',
        labelNames: ['verdict'],
        registers,
      }),
      'verdict',
      ['queue'],
    ),
    breakerChanges: countBreakerChanges(registers),
    relayGapsFilled: new Counter({
      name: 'parley_relay_gaps_filled_total',
      help: 'Reads of a stream that found text which no message had brought.',
      registers,
    }),
    refusals: new Counter({
      name: 'parley_refusals_total',
      help: 'Calls without a valid key or token, or without the right to what they asked for, by plane (public, admin) and error code.',
      labelNames: ['plane', 'code'],
      registers,
    }),
    replays: new Counter({
      name: 'parley_replays_total',
      help: 'Failed requests that were to be replayed, by outcome: replayed, or why not.',
      labelNames: ['outcome'],
      registers,
    }),
    notFound: new Counter({
      name: 'parley_not_found_total',
      help: 'Calls that were answered 404, by plane (public, admin).',
      labelNames: ['plane'],
      registers,
    }),
    paymentMismatches: fromZero(
      new Counter({
        name: 'parley_payment_mismatches_total',
        help: 'Paid notices that did not fit their checkout and booked nothing, by what did not fit.',
        labelNames: ['reason'],
        registers,
      }),
      'reason',
      PAYMENT_MISMATCHES,
    ),
  };
}
