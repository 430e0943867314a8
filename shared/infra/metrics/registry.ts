import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

import { PAYMENT_MISMATCHES } from '../../domain/billing/payment-mismatch.ts';
import { gaugeQueues } from './queue-gauges.ts';
import type { QueueGauges } from './queue-gauges.ts';

/** From 5 ms to 10 minutes, the longest request. */
const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** What `/metrics` shows; safe to call at any time. */
export interface MetricsPage {
  contentType: string;
  render(): Promise<string>;
}

function createRegistry(processName: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return registry;
}

function countBreakerChanges(registers: Registry[]): Counter {
  return new Counter({
    name: 'parley_breaker_changes_total',
    help: 'Changes of circuit breakers that this process made; the sum over all processes counts each once.',
    labelNames: ['provider', 'from', 'to'],
    registers,
  });
}

/**
 * A series that begins with its first event shows no increase by it, so an alert on the increase would miss the one event
 * that it is there for.
 */
function fromZero<Label extends string>(
  counter: Counter<Label>,
  label: Label,
  values: readonly string[],
): Counter<Label> {
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
  return counter;
}

function pageOf(registry: Registry): MetricsPage {
  return { contentType: registry.contentType, render: () => registry.metrics() };
}

export type IngressMetrics = ReturnType<typeof createIngressMetrics>;

/** What the ingress reads whenever its page is asked for. */
export interface IngressGauges extends QueueGauges {
  openReaders: () => number;
  redisMemoryRatio: () => number;
}

export function createIngressMetrics({ openReaders, redisMemoryRatio, ...queueGauges }: IngressGauges) {
  const registers = [createRegistry('ingress')];
  gaugeQueues(registers, queueGauges);
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
  return {
    page: pageOf(registers[0] ?? new Registry()),
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
      ['lane'],
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

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** What a worker reads whenever its page is asked for. */
export interface WorkerGauges {
  unreadableProviders: () => number;
}

export function createWorkerMetrics({ unreadableProviders }: WorkerGauges) {
  const registers = [createRegistry('worker')];
  new Gauge({
    name: 'parley_unreadable_providers',
    help: 'Providers that are left out because their stored API key cannot be decrypted.',
    registers,
    collect() {
      this.set(unreadableProviders());
    },
  });
  const seconds = (name: string, help: string, labelNames: string[]) =>
    new Histogram({ name, help, labelNames, buckets: SECONDS_BUCKETS, registers });
  const count = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  return {
    page: pageOf(registers[0] ?? new Registry()),
    requests: count('parley_requests_total', 'Ended requests by tier and finish reason or error code.', [
      'tier',
      'outcome',
    ]),
    duration: seconds('parley_request_duration_seconds', 'From acceptance to the terminal event.', ['tier']),
    queueWait: seconds('parley_queue_wait_seconds', 'From acceptance to the claim by a worker.', ['tier']),
    firstToken: seconds('parley_time_to_first_token_seconds', 'From acceptance to the first text.', ['tier']),
    tokens: count('parley_tokens_total', 'Metered tokens by tier and kind (prompt, completion).', ['tier', 'kind']),
    unbilled: count(
      'parley_unbilled_tokens_total',
      'Prompt tokens that a provider was asked and nobody pays for, by reason (cancelled, failed, flagged, not_json).',
      ['reason'],
    ),
    attempts: count('parley_provider_attempts_total', 'Provider calls by target (provider and model) and outcome.', [
      'provider',
      'model',
      'outcome',
    ]),
    breakerChanges: countBreakerChanges(registers),
    breakerState: new Gauge({
      name: 'parley_breaker_state',
      help: 'Circuit breakers by provider: 0 closed, 1 half open, 2 open.',
      labelNames: ['provider'],
      registers,
    }),
    flagged: count('parley_moderation_flagged_total', 'Flagged texts by category and side (input, output).', [
      'category',
      'side',
    ]),
    moderations: count('parley_moderation_checks_total', 'Checks by backend and outcome (passed, flagged, failed).', [
      'backend',
      'outcome',
    ]),
    moderationDuration: seconds('parley_moderation_check_duration_seconds', 'One check, with all its calls.', [
      'backend',
    ]),
    webhookAttempts: count('parley_webhook_attempts_total', 'Attempts at deliveries by outcome (succeeded, failed).', [
      'outcome',
    ]),
    settled: count('parley_settled_total', 'Settlement records booked.', []),
    ledgerDrift: new Gauge({
      name: 'parley_ledger_drift',
      help: 'What the last reconciliation left wrong, by part; anything but 0 needs an operator.',
      labelNames: ['shard', 'part'],
      registers,
    }),
    driftRepaired: count(
      'parley_ledger_drift_repaired_total',
      'Differences that reconciliation has repaired, by part.',
      ['part'],
    ),
    unsettled: new Gauge({
      name: 'parley_outbox_length',
      help: 'Settlement records waiting, by shard.',
      labelNames: ['shard'],
      registers,
    }),
    deadLetters: new Gauge({
      name: 'parley_dead_letters',
      help: 'Settlement records that could not be booked, by shard; they are tried again every hour.',
      labelNames: ['shard'],
      registers,
    }),
    settlementLag: new Gauge({
      name: 'parley_settlement_lag_seconds',
      help: 'For how long the oldest waiting settlement record has waited, by shard.',
      labelNames: ['shard'],
      registers,
    }),
    settlementBlocked: fromZero(
      count(
        'parley_settlement_blocked_total',
        'Rounds that booked nothing of what waits: a store does not serve (unavailable), or MongoDB refuses all (refused).',
        ['reason'],
      ),
      'reason',
      ['unavailable', 'refused'],
    ),
    reconcileFailures: count('parley_reconciliation_failures_total', 'Tenants that could not be reconciled.', []),
  };
}
