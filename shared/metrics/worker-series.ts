import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

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

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** Concurrent calls of a provider, or of one of its models. */
interface CapacityFigures {
  provider: string;
  /** Undefined: all of them. */
  model: string | undefined;
  inFlight: number;
  /** Undefined: it has none of its own. */
  ceiling: { calls: number; source: 'set' | 'found' } | undefined;
}

export interface WorkerGauges extends CheckGauges {
  unreadableProviders: () => number;
  /** Lists only what a tier calls: an autoscaler takes every ceiling for free places. */
  capacities: () => readonly CapacityFigures[];
}

type Count = (name: string, help: string, labelNames: string[]) => Counter;

function gaugeCapacities(registers: Registry[], capacities: WorkerGauges['capacities']): void {
  const ceiling = 'Calls at once of the whole fleet by provider, model (empty: all models) and source (set, found).';
  gaugeRows(registers, ['parley_provider_ceiling', ceiling, 'provider', 'model', 'source'], () =>
    capacities().flatMap(({ provider, model = '', ceiling: own }) =>
      own === undefined ? [] : [[{ provider, model, source: own.source }, own.calls]],
    ),
  );
  const inFlight = 'Calls in flight of the whole fleet by provider and model (empty: all models).';
  gaugeRows(registers, ['parley_provider_in_flight', inFlight, 'provider', 'model'], () =>
    capacities().map(({ provider, model = '', inFlight: calls }) => [{ provider, model }, calls]),
  );
}

function providerSeries(registers: Registry[], count: Count) {
  return {
    attempts: count('parley_provider_attempts_total', 'Provider calls by target (provider and model) and outcome.', [
      'provider',
      'model',
      'outcome',
    ]),
    oddEnds: count('parley_provider_odd_ends_total', 'Answers with an unknown finish reason, by target.', [
      'provider',
      'model',
    ]),
    breakerChanges: countBreakerChanges(registers),
    breakerState: new Gauge({
      name: 'parley_breaker_state',
      help: 'Circuit breakers by provider: 0 closed, 1 half open, 2 open.',
      labelNames: ['provider'],
      registers,
    }),
  };
}

function settlementSeries(registers: Registry[], count: Count) {
  return {
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

export function createWorkerMetrics({ unreadableProviders, capacities, checks }: WorkerGauges) {
  const registry = createRegistry('worker');
  const registers = [registry];
  gaugeChecks(registers, { checks });
  gaugeCapacities(registers, capacities);
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
  const count: Count = (name, help, labelNames) => new Counter({ name, help, labelNames, registers });
  return {
    page: metricsPage(registry),
    ...providerSeries(registers, count),
    ...settlementSeries(registers, count),
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
      'Tokens that providers were asked for and nobody pays for, by reason (cancelled, failed, flagged, not_json, over_grant).',
      ['reason'],
    ),
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
  };
}
