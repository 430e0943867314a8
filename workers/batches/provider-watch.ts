import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { RequestTrace } from '../../shared/contracts/request-trace.ts';
import type { RoutingTable } from '../../shared/domain/routing/routing.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { Breakers } from '../pipeline/breakers/breakers.ts';
import { answeredAt } from './line-retry.ts';

/** What the leader of batches knows of the providers behind each tier. */
export interface ProviderWatch {
  /** How a request of the tier ended, a line's or another's; `hasFailed`: for a passing reason. */
  noteEnd(tier: string, trace: RequestTrace | undefined, hasFailed: boolean): void;
  /** Whether a call that began at `since` or later was answered. */
  hasAnsweredSince(tier: string, since: number): boolean;
  /** Nobody behind the tier answers: lines wait. */
  isDown(tier: Tier): boolean;
  /** True for one line now and then, which goes to find out whether somebody answers again. */
  takeProbe(tier: Tier): boolean;
}

export interface ProviderWatchDeps {
  routing: { current(): RoutingTable };
  breakers: Pick<Breakers, 'isClosed' | 'isPassable'>;
  /** Milliseconds, by a clock that is never set. */
  now: () => number;
  log: Logger;
}

/** So many passing failures without a success between them are an outage, whatever the breakers say: of moderation, for one. */
const FAILURES_IN_A_ROW = 20;
/** A line that is sent into an outage costs an admission and a job. */
const PROBE_MS = 1_000;

interface TierHealth {
  /** Passing failures since the last success. */
  failures: number;
  /** When the latest call began that was answered. */
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
    noteEnd(tier, trace, hasFailed) {
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
      // An open breaker would answer for the provider until its own pause is over.
      if (!providersOf(tier).some(breakers.isPassable)) return false;
      health.probedAt = now();
      return true;
    },
  };
}
