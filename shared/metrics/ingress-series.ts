import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

import { PAYMENT_MISMATCHES } from '../domain/payment-mismatch.ts';
import {
  gaugeChecks,
  SECONDS_BUCKETS,
  countBreakerChanges,
  createRegistry,
  fromZero,
  metricsPage,
} from './registry.ts';
import type { CheckGauges } from './registry.ts';
import { gaugeQueues } from './queue-gauges.ts';
import type { QueueGauges } from './queue-gauges.ts';

export type IngressMetrics = ReturnType<typeof createIngressMetrics>;

/** Figures that the ingress reads whenever its page is asked for. */
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
