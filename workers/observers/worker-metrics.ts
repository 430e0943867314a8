import { failureOf } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { BreakerState } from '../../shared/domain/breaker.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import { logBreakerChange } from '../../shared/logging/logger.ts';
import type { LogFields, Logger } from '../../shared/logging/logger.ts';
import type { WorkerMetrics } from '../../shared/metrics/worker-series.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { spaceFields } from '../../shared/mongo/collection.ts';
import type { RequestRecorder } from '../../shared/mongo/requests/request-log.ts';
import { statusOf } from '../../shared/requests/delivery.ts';
import { isDrifting } from '../settlement/reconcile.ts';
import type { Drift } from '../settlement/reconcile.ts';
import type { WorkerEventBus } from '../pipeline/worker-events.ts';

const STATE_NUMBER: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

export function measureWorker(events: WorkerEventBus, metrics: WorkerMetrics, clock: Clock): void {
  const secondsSince = ({ replayedAt, acceptedAt }: RequestEnvelope) =>
    Math.max(0, clock.now() - (replayedAt ?? acceptedAt)) / 1000;

  events.on('request.claimed', ({ envelope }) => {
    metrics.queueWait.observe({ tier: envelope.tier }, secondsSince(envelope));
  });
  events.on('answer.first_text', ({ envelope }) => {
    metrics.firstToken.observe({ tier: envelope.tier }, secondsSince(envelope));
  });
  events.on('request.finished', ({ envelope }, { finishReason, usage, error, unbilled }) => {
    const { tier } = envelope;
    metrics.requests.inc({ tier, outcome: error?.code ?? finishReason });
    metrics.duration.observe({ tier }, secondsSince(envelope));
    metrics.tokens.inc({ tier, kind: 'prompt' }, usage.promptTokens);
    metrics.tokens.inc({ tier, kind: 'completion' }, usage.completionTokens);
    for (const [reason, tokens] of Object.entries(unbilled?.tokens ?? {})) metrics.unbilled.inc({ reason }, tokens);
  });
  events.on('moderation.checked', (backend, outcome, durationMs) => {
    metrics.moderations.inc({ backend, outcome });
    metrics.moderationDuration.observe({ backend }, durationMs / 1000);
  });
  events.on('moderation.flagged', (_run, side, categories) => {
    for (const category of categories) metrics.flagged.inc({ category, side });
  });
  events.on('provider.called', ({ provider, model }, outcome) => {
    metrics.attempts.inc({ provider, model, outcome });
  });
  events.on('provider.odd_end', ({ provider, model }) => {
    metrics.oddEnds.inc({ provider, model });
  });
  events.on('breaker.seen', (provider, state) => {
    metrics.breakerState.set({ provider }, STATE_NUMBER[state]);
  });
  events.on('breaker.changed', ({ provider, from, to }) => {
    metrics.breakerChanges.inc({ provider, from, to });
  });
  events.on('webhook.attempted', (outcome) => {
    metrics.webhookAttempts.inc({ outcome });
  });
  events.on('settlement.booked', (records) => {
    metrics.settled.inc(records);
  });
  events.on('settlement.waiting', (shard, { outbox, deadLetters, lagSeconds }) => {
    const labels = { shard: String(shard) };
    metrics.unsettled.set(labels, outbox);
    metrics.deadLetters.set(labels, deadLetters);
    metrics.settlementLag.set(labels, lagSeconds);
  });
  events.on('settlement.blocked', (reason) => {
    metrics.settlementBlocked.inc({ reason });
  });
  events.on('ledger.reconciled', (_shard, { failed, found, left }) => {
    metrics.reconcileFailures.inc(failed);
    for (const part of Object.keys(left) as (keyof Drift)[])
      if (found[part] > left[part]) metrics.driftRepaired.inc({ part }, found[part] - left[part]);
  });
  events.on('ledger.drift', (shard, left) => {
    for (const [part, amount] of Object.entries(left)) metrics.ledgerDrift.set({ shard: String(shard), part }, amount);
  });
}

export function logWorker(events: WorkerEventBus, clock: Clock, log: Logger): void {
  events.on('request.finished', ({ envelope, answer, claimedAt }, { finishReason, usage, error, cause, charge }) => {
    const { tier, requestId, tenantId, keyId, endpoint } = envelope;
    const since = envelope.replayedAt ?? envelope.acceptedAt;
    const untilMs = (at: number) => Math.max(0, Math.round(at - since));
    const fields: LogFields = {
      requestId,
      tenantId,
      keyId,
      endpoint,
      tier,
      provider: answer.provider,
      model: answer.model,
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      credits: toCredits(charge?.costMicro ?? 0),
      attempts: answer.trace.attempts.length,
      waitMs: untilMs(claimedAt),
      ...(answer.firstTextAt === undefined ? {} : { firstTokenMs: untilMs(answer.firstTextAt) }),
      durationMs: untilMs(clock.now()),
      finishReason,
    };
    if (error === undefined) log.info('A request ended.', fields);
    else {
      const failed = { ...fields, code: error.code, reason: failureOf(error.code, answer.trace), error: cause };
      log[ERRORS[error.code].status < 500 ? 'info' : 'warn']('A request failed.', failed);
    }
  });
  events.on('moderation.flagged', ({ envelope }, side, categories) => {
    const { requestId, tenantId } = envelope;
    const message = side === 'input' ? 'A request was refused by moderation.' : 'An answer was cut off by moderation.';
    log.info(message, { requestId, tenantId, categories: [...categories] });
  });
  events.on('provider.odd_end', (target, word) => {
    const message = 'A provider ended an answer with a finish reason that is not known; it was taken for stop.';
    log.warn(message, { ...target, finishReason: word });
  });
  events.on('breaker.changed', (change) => {
    logBreakerChange(log, change);
  });
  events.on('ledger.reconciled', (shard, { found, left }) => {
    if (isDrifting(found)) log.error('Reconciliation found drift and repaired it.', { shard, drift: { ...found } });
    if (isDrifting(left)) log.error('Reconciliation left drift; it needs an operator.', { shard, drift: { ...left } });
  });
}

/** Notes how each request ended, for the administration's list of requests. */
export function recordRequestEnds(events: WorkerEventBus, recorder: RequestRecorder, clock: Clock): void {
  events.on('request.ended_early', recorder.endEarly);
  events.on('request.finished', ({ envelope, answer, claimedAt }, { finishReason, usage, error, charge }) => {
    const { trace, firstTextAt } = answer;
    recorder.note({
      _id: envelope.requestId,
      ...spaceFields(envelope),
      keyId: envelope.keyId,
      endpoint: envelope.endpoint,
      status: statusOf(finishReason),
      createdAt: envelope.acceptedAt,
      tier: envelope.tier,
      startedAt: claimedAt,
      finishedAt: clock.now(),
      finishReason,
      provider: answer.provider,
      model: answer.model,
      attempts: trace.attempts,
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      estimated: usage.estimated === true,
      costMicro: charge?.costMicro ?? 0,
      ...(charge?.spend === undefined ? {} : { spend: charge.spend }),
      ...(firstTextAt === undefined ? {} : { firstTokenAt: firstTextAt }),
      ...(trace.moderatedAt === undefined ? {} : { moderatedAt: trace.moderatedAt }),
      ...(trace.moderation === undefined ? {} : { verdict: trace.moderation.verdict }),
      ...(error === undefined ? {} : { code: error.code, reason: failureOf(error.code, trace) }),
    });
  });
}
