import type { Usage } from '../../../shared/contracts/events.ts';
import type { Rates } from '../../../shared/domain/routing/routing.ts';
import { priceUsage } from '../../../shared/domain/pricing/pricing.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Held } from '../../../shared/infra/redis/requests/running-request.ts';
import type { DeliveryRef, RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import { Stopped } from '../stage.ts';
import type { Bound, Lease } from '../stage.ts';

/** Less than a third of the lease, so that two renewals may fail before it ends. */
const RENEW_MS = 3_000;
/** Expected tokens until the first renewal, while the speed of the answer is unknown. */
const FIRST_INTERVAL_TOKENS = 100;
/** A provider is called only if this much of an answer is granted, or all of it. */
const LEAST_ANSWER_TOKENS = 32;
/**
 * A positive balance always admits one request, which may overrun it by this: half of the bound in
 * docs/spec/contract.md section 8.
 */
const OVERRUN_TOKENS = 100;

const NOTHING: Held = { micro: 0, tokens: 0 };

export interface LeaseOptions {
  ref: DeliveryRef;
  rates: Rates;
  maxTokens: number;
  /** Milliseconds until the request's deadline. */
  remainingMs: number;
  /** What the request holds when it is claimed. */
  held: Held;
}

/**
 * Renews every 3 s, and raises hold and token weight to what is used so far plus the next interval
 * (docs/architecture/facts.md section 3). Between renewals it grants tokens of credits, budget and allowance. Each grant
 * doubles what is used, so an answer needs few of them (docs/decisions/0039-text-within-what-is-granted.md).
 */
export function createLease(requests: Pick<RequestStore, 'renew'>, log: Logger, options: LeaseOptions): Lease {
  const { ref, rates, maxTokens, remainingMs } = options;
  const controller = new AbortController();
  let { held } = options;
  let used: Usage = { promptTokens: 0, completionTokens: 0 };
  /** Undefined: no provider has been chosen, so nothing need be held yet. */
  let promptTokens: number | undefined;
  let lastCompletion = 0;
  const overrun = {
    micro: OVERRUN_TOKENS * Math.max(rates.promptMicro, rates.completionMicro),
    tokens: OVERRUN_TOKENS,
  };

  function stop(reason: Stopped['reason'], bound?: Bound): void {
    controller.abort(new Stopped(reason, bound));
  }

  function priceOf(completionTokens: number): number {
    return priceUsage({ promptTokens: promptTokens ?? 0, completionTokens }, rates);
  }

  /** The completion tokens that the hold covers. */
  function room(): { credits: number; tokens: number } {
    const left = held.micro - priceOf(0);
    const credits = rates.completionMicro > 0 ? Math.floor(left / rates.completionMicro) : left >= 0 ? Infinity : 0;
    return { credits, tokens: held.tokens - (promptTokens ?? 0) };
  }

  function granted(): number {
    const { credits, tokens } = room();
    const least = Math.min(credits, tokens);
    // No provider gives more than it was asked for, whatever our estimate says.
    return least >= maxTokens ? Infinity : Math.max(0, least);
  }

  function exhaust(): void {
    const { credits, tokens } = room();
    const isTest = held.micro === Infinity;
    stop('exhausted', credits <= tokens ? 'credits' : isTest ? 'allowance' : 'budget');
  }

  function holdFor(completionTokens: number): Held {
    if (promptTokens === undefined) return NOTHING;
    const completion = Math.min(maxTokens, completionTokens);
    return { micro: priceOf(completion), tokens: promptTokens + completion };
  }

  async function renew(mustTokens: number, aheadTokens: number): Promise<void> {
    const interval = Math.max(FIRST_INTERVAL_TOKENS, used.completionTokens - lastCompletion);
    const renewal = await requests.renew(ref, {
      weight: used.promptTokens + Math.min(maxTokens, used.completionTokens + interval),
      must: holdFor(mustTokens),
      ahead: holdFor(aheadTokens),
      overrun,
    });
    if (renewal.outcome !== 'superseded') held = renewal.held;
    if (renewal.outcome !== 'ok') stop(renewal.outcome);
  }

  /** Holds what is used, and as much again as in the last interval. */
  function renewForNext(): Promise<void> {
    const interval = Math.max(FIRST_INTERVAL_TOKENS, used.completionTokens - lastCompletion);
    const renewal = renew(used.completionTokens, used.completionTokens + interval);
    lastCompletion = used.completionTokens;
    return renewal;
  }

  /** A renewal that waits for Redis is sent once Redis is back: more of them would only add up. */
  let isRenewing = false;
  async function renewUnlessWaiting(): Promise<void> {
    if (isRenewing) return;
    isRenewing = true;
    await renewForNext().catch((error: unknown) => {
      log.warn('A lease could not be renewed; the next interval tries again.', { requestId: ref.requestId, error });
    });
    isRenewing = false;
  }
  const timer = setInterval(() => void renewUnlessWaiting(), RENEW_MS);
  const deadline = setTimeout(
    () => {
      stop('deadline');
    },
    Math.max(0, remainingMs),
  );
  // Not by the timer, which would let a request that waited too long call its provider.
  if (remainingMs <= 0) stop('deadline');

  return {
    signal: controller.signal,
    stop,
    granted,
    exhaust,
    need(usage) {
      used = usage;
    },
    async cover(tokens, isNew) {
      promptTokens = tokens;
      used = { promptTokens: tokens, completionTokens: 0 };
      const least = Math.min(maxTokens, LEAST_ANSWER_TOKENS);
      if (isNew || granted() < least) await renew(least, maxTokens);
      if (granted() === 0) exhaust();
      controller.signal.throwIfAborted();
      return granted() === Infinity;
    },
    async grant(completionTokens) {
      try {
        await renew(completionTokens, completionTokens * 2 + FIRST_INTERVAL_TOKENS);
      } catch (error) {
        log.warn('A running request could not be granted more; it tries again.', { requestId: ref.requestId, error });
        throw error;
      }
    },
    check: renewForNext,
    release() {
      clearInterval(timer);
      clearTimeout(deadline);
    },
  };
}

/** The leases of the requests that run in this process. */
export interface OpenLeases {
  open(options: LeaseOptions): Lease;
  /** Checks a request's lease at once; does nothing where the request does not run here. */
  check(requestId: string): Promise<void>;
  /** A request was cancelled. If it runs here it is checked at once; if this worker is about to start it, it is checked then. */
  hearCancel(requestId: string): Promise<void>;
  /** Checks all leases at once, so that Redis knows what runs here. */
  checkAll(): Promise<unknown>;
}

/** By then a job that was taken has started, or was put back (shared/infra/queue/chat-backend.ts). */
const START_MS = 5_000;
/** Every worker of a shard hears of all cancelled requests of the shard. */
const CANCELLED_MAX = 10_000;

/** Recently cancelled requests that do not run here. One of them may be about to start, with a claim made before. */
function createCancelled() {
  const heardAt = new Map<string, number>();
  const isRecent = (at: number) => performance.now() - at < START_MS;
  return {
    add(requestId: string): void {
      heardAt.delete(requestId);
      heardAt.set(requestId, performance.now());
      for (const [oldest, at] of heardAt) {
        if (isRecent(at) && heardAt.size <= CANCELLED_MAX) break;
        heardAt.delete(oldest);
      }
    },
    take(requestId: string): boolean {
      const at = heardAt.get(requestId);
      return at !== undefined && heardAt.delete(requestId) && isRecent(at);
    },
  };
}

export function createOpenLeases(create: (options: LeaseOptions) => Lease): OpenLeases {
  /**
   * In boxes that are emptied when their requests end: a table that a map has outgrown keeps its values alive until V8's
   * next full collection.
   */
  const running = new Map<string, { lease: Lease | undefined }>();
  const cancelled = createCancelled();
  return {
    open(options) {
      const { requestId } = options.ref;
      const lease = create(options);
      // Redis knows whether this run was cancelled: an administrator may have started the request anew.
      if (cancelled.take(requestId)) lease.check().catch(() => undefined);
      const place: { lease: Lease | undefined } = { lease };
      running.set(requestId, place);
      return {
        ...lease,
        release() {
          // A later delivery of the same request may be in its place.
          if (running.get(requestId) === place) running.delete(requestId);
          place.lease = undefined;
          lease.release();
        },
      };
    },
    check: (requestId) => running.get(requestId)?.lease?.check() ?? Promise.resolve(),
    async hearCancel(requestId) {
      const lease = running.get(requestId)?.lease;
      if (lease === undefined) cancelled.add(requestId);
      else await lease.check();
    },
    checkAll: () => Promise.allSettled([...running.values()].map(({ lease }) => lease?.check() ?? Promise.resolve())),
  };
}
