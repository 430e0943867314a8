import type { BreakerChange, BreakerState } from '../shared/domain/routing/breaker.ts';
import { logBreakerChange } from '../shared/infra/logging/logger.ts';
import type { Logger } from '../shared/infra/logging/logger.ts';
import type { WorkerMetrics } from '../shared/infra/metrics/registry.ts';
import type { Clock } from '../shared/lifecycle/clock.ts';
import type { ModerationVerdict } from './moderation/moderator.ts';
import type { Claimed, Outcome } from './pipeline/stage.ts';

const STATE_NUMBER: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

/** Turns what the pipeline reports into metrics and one log line per request. */
export function createPipelineMeter(metrics: WorkerMetrics, clock: Clock, log: Logger) {
  const secondsSince = (time: number) => Math.max(0, clock.now() - time) / 1000;

  return {
    onClaimed({ envelope }: Claimed): void {
      metrics.queueWait.observe({ tier: envelope.tier }, secondsSince(envelope.acceptedAt));
    },

    onModerated(backend: string, outcome: string, durationMs: number): void {
      metrics.moderations.inc({ backend, outcome });
      metrics.moderationDuration.observe({ backend }, durationMs / 1000);
    },

    onInputFlagged(category: string): void {
      metrics.flagged.inc({ category, side: 'input' });
    },

    onOutputFlagged({ envelope }: Claimed, verdict: ModerationVerdict): void {
      for (const category of verdict.categories) metrics.flagged.inc({ category, side: 'output' });
      const { requestId, tenantId } = envelope;
      log.info('An answer was cut off by moderation.', { requestId, tenantId, categories: [...verdict.categories] });
    },

    onAttempt(provider: string, outcome: string): void {
      metrics.attempts.inc({ provider, outcome });
    },

    onBreakerState(provider: string, state: BreakerState): void {
      metrics.breakerState.set({ provider }, STATE_NUMBER[state]);
    },

    onBreakerChange(change: BreakerChange): void {
      metrics.breakerChanges.inc({ provider: change.provider, from: change.from, to: change.to });
      logBreakerChange(log, change);
    },

    onFirstText({ envelope }: Claimed): void {
      metrics.firstToken.observe({ tier: envelope.tier }, secondsSince(envelope.acceptedAt));
    },

    onFinished({ envelope, answer }: Claimed, { finishReason, usage, error }: Outcome): void {
      const { tier, requestId, tenantId, keyId, acceptedAt } = envelope;
      const { promptTokens, completionTokens } = usage;
      const seconds = secondsSince(acceptedAt);
      metrics.requests.inc({ tier, outcome: error?.code ?? finishReason });
      metrics.duration.observe({ tier }, seconds);
      metrics.tokens.inc({ tier, kind: 'prompt' }, promptTokens);
      metrics.tokens.inc({ tier, kind: 'completion' }, completionTokens);
      const { provider, model } = answer;
      const durationMs = Math.round(seconds * 1000);
      log.info('A request ended.', {
        requestId,
        tenantId,
        keyId,
        tier,
        provider,
        model,
        promptTokens,
        completionTokens,
        durationMs,
        finishReason,
        ...(error === undefined ? {} : { code: error.code }),
      });
    },
  };
}

export type PipelineMeter = ReturnType<typeof createPipelineMeter>;
