import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { RequestTrace } from '../../shared/contracts/events.ts';
import type { RoutingTable } from '../../shared/domain/routing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { Breakers } from '../pipeline/breakers.ts';
import { answeredAt } from './line-state.ts';

export interface ProviderWatch {
  /** Call it for every ended request, not only for lines. `hasFailed`: the request failed for a temporary reason. */
  recordEnd(tier: string, trace: RequestTrace | undefined, hasFailed: boolean): void;
  /** True if a call that began at `since` or later was answered. */
  hasAnsweredSince(tier: string, since: number): boolean;
  /** Lines of a tier wait while no provider of it answers. */
  isDown(tier: Tier): boolean;
  /** True at most once per second: one line may be sent to a tier that is down, to see whether it answers again. */
  takeProbe(tier: Tier): boolean;
}

export interface ProviderWatchDeps {
  routing: { current(): RoutingTable };
  breakers: Pick<Breakers, 'isClosed' | 'isPassable'>;
  /** Milliseconds of a clock that is never set back, such as `performance.now`. */
  now: () => number;
  log: Logger;
}

/** This many temporary failures in a row are an outage even if a breaker is closed: moderation has no breaker. */
const FAILURES_IN_A_ROW = 20;
/** Minimum time between two probes, because each costs an admission and a job. */
const PROBE_MS = 1_000;

interface TierHealth {
  failures: number;
  /** The start of the latest answered call; milliseconds since the epoch. */
  answeredAt: number;
  probedAt: number;
  isDown: boolean;
}

export function createProviderWatch({ routing, breakers, now, log }: ProviderWatchDeps): ProviderWatch {
  const tiers = new Map<string, TierHealth>();

  function healthOf(tier: string): TierHealth {
    let health = tiers.get(tier);
    if (health === undefined) {
      health = { failures: 0, answeredAt: 0, probedAt: -Infinity, isDown: false };
      tiers.set(tier, health);
    }
    return health;
  }

  function providersOf(tier: Tier): { name: string }[] {
    return (routing.current().tiers[tier]?.targets ?? []).map(({ provider: name }) => ({ name }));
  }

  return {
    recordEnd(tier, trace, hasFailed) {
      const health = healthOf(tier);
      const answered = answeredAt(trace);
      if (answered === undefined) {
        if (hasFailed) health.failures += 1;
        return;
      }
      health.failures = 0;
      health.answeredAt = Math.max(health.answeredAt, answered);
    },

    hasAnsweredSince: (tier, since) => healthOf(tier).answeredAt >= since,

    isDown(tier) {
      const health = healthOf(tier);
      const isClosed = providersOf(tier).some(breakers.isClosed);
      const isDown = !isClosed || health.failures >= FAILURES_IN_A_ROW;
      if (isDown && !health.isDown) log.warn('Lines of batches wait for a provider.', { tier });
      if (!isDown && health.isDown) log.info('Lines of batches are sent again.', { tier });
      health.isDown = isDown;
      return isDown;
    },

    takeProbe(tier) {
      const health = healthOf(tier);
      if (now() - health.probedAt < PROBE_MS) return false;
      // While a breaker's pause lasts, no call would reach the provider.
      if (!providersOf(tier).some(breakers.isPassable)) return false;
      health.probedAt = now();
      return true;
    },
  };
}
