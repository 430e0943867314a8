import type { Usage } from '../../../shared/contracts/events.ts';
import type { Rates } from '../../../shared/domain/routing/routing.ts';
import { priceUsage } from '../../../shared/domain/pricing/pricing.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AttemptRef, RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import { Stopped } from '../stage.ts';
import type { Lease } from '../stage.ts';

/** A third of the lease's own time, so that two renewals may fail before it ends. */
const RENEW_MS = 3_000;
/** What a request may generate until its next renewal, before anything is known of its speed. */
const FIRST_INTERVAL_TOKENS = 100;

export interface LeaseOptions {
  ref: AttemptRef;
  rates: Rates;
  maxTokens: number;
  /** Milliseconds until the request's deadline. */
  remainingMs: number;
  /** What admission holds: renewals that need no more change nothing. */
  admitted: Usage;
  /** What the request holds, and what else the tenant could still spend; micro-credits. */
  credits: { heldMicro: number; spendableMicro: number };
}

/**
 * Renews every 3 s, raising hold and token weight to what is used so far plus the next interval
 * (docs/architecture/facts.md section 3). Where the tenant's credits may not last, it also renews as soon as more is
 * used than was asked for: then what is spent beyond them is bounded by tokens, however fast they come and however late
 * a timer is.
 */
export function createLease(requests: Pick<RequestStore, 'renew'>, log: Logger, options: LeaseOptions): Lease {
  const { ref, rates, maxTokens, remainingMs, credits } = options;
  const controller = new AbortController();
  let used: Usage = options.admitted;
  let lastCompletion = 0;
  const isShort = credits.spendableMicro < maxTokens * rates.completionMicro;
  let askedMicro = credits.heldMicro;

  function stop(reason: Stopped['reason']): void {
    controller.abort(new Stopped(reason));
  }

  function neededNext(): Usage {
    const interval = Math.max(FIRST_INTERVAL_TOKENS, used.completionTokens - lastCompletion);
    lastCompletion = used.completionTokens;
    return { promptTokens: used.promptTokens, completionTokens: Math.min(maxTokens, used.completionTokens + interval) };
  }

  /** Nothing is charged for a request without text: until its first text it has used nothing. */
  function chargeableMicro(): number {
    return used.completionTokens === 0 ? 0 : priceUsage(used, rates);
  }

  async function renew(usedMicro: number): Promise<void> {
    const next = neededNext();
    askedMicro = Math.max(askedMicro, priceUsage(next, rates));
    const outcome = await requests.renew(ref, {
      micro: priceUsage(next, rates),
      tokens: next.promptTokens + next.completionTokens,
      usedMicro,
    });
    if (outcome !== 'ok') stop(outcome);
  }

  function renewSoon(): void {
    renew(chargeableMicro()).catch((error: unknown) => {
      log.warn('A lease could not be renewed; the next interval tries again.', { requestId: ref.requestId, error });
    });
  }
  const timer = setInterval(renewSoon, RENEW_MS);
  const deadline = setTimeout(
    () => {
      stop('deadline');
    },
    Math.max(0, remainingMs),
  );
  // At once: a timer would let a request that waited too long in the queue get as far as its provider.
  if (remainingMs <= 0) stop('deadline');

  return {
    signal: controller.signal,
    stop,
    need(usage) {
      used = usage;
      if (isShort && chargeableMicro() > askedMicro) renewSoon();
    },
    renew: () => renew(priceUsage(used, rates)),
    check: () => renew(chargeableMicro()),
    release() {
      clearInterval(timer);
      clearTimeout(deadline);
    },
  };
}
