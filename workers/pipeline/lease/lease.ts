import type { Usage } from '../../../shared/contracts/events.ts';
import type { Rates } from '../../../shared/domain/routing/routing.ts';
import { priceUsage } from '../../../shared/domain/pricing/pricing.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { Held } from '../../../shared/infra/redis/requests/running-request.ts';
import type { AttemptRef, RequestStore } from '../../../shared/infra/redis/requests/request-store.ts';
import { Stopped } from '../stage.ts';
import type { Bound, Lease } from '../stage.ts';

/** A third of the lease's own time, so that two renewals may fail before it ends. */
const RENEW_MS = 3_000;
/** What a request may generate until its next renewal, before anything is known of its speed. */
const FIRST_INTERVAL_TOKENS = 100;
/** A provider is called only where so much of an answer is granted, or all of it. */
const LEAST_ANSWER_TOKENS = 32;
/** How far the one request that a positive balance always admits may overrun it: half of what docs/spec/contract.md section 8 has. */
const OVERRUN_TOKENS = 100;

const NOTHING: Held = { micro: 0, tokens: 0 };

export interface LeaseOptions {
  ref: AttemptRef;
  rates: Rates;
  maxTokens: number;
  /** Milliseconds until the request's deadline. */
  remainingMs: number;
  /** What the request holds when it is claimed. */
  held: Held;
}

/**
 * Renews every 3 s, raising hold and token weight to what is used so far plus the next interval (docs/architecture/facts.md section 3).
 * Between renewals it grants tokens of credits, budget and allowance; a grant doubles what is used, so that an answer
 * asks for few of them (docs/decisions/0039).
 */
export function createLease(requests: Pick<RequestStore, 'renew'>, log: Logger, options: LeaseOptions): Lease {
  const { ref, rates, maxTokens, remainingMs } = options;
  const controller = new AbortController();
  let { held } = options;
  let used: Usage = { promptTokens: 0, completionTokens: 0 };
  /** Undefined: no provider has been chosen, so nothing has to be held yet. */
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

  /** Completion tokens that what is held has room for. */
  function room(): { credits: number; tokens: number } {
    const left = held.micro - priceOf(0);
    const credits = rates.completionMicro > 0 ? Math.floor(left / rates.completionMicro) : left >= 0 ? Infinity : 0;
    return { credits, tokens: held.tokens - (promptTokens ?? 0) };
  }

  function granted(): number {
    const { credits, tokens } = room();
    const least = Math.min(credits, tokens);
    // A provider gives no more than it was asked for, whatever we estimate that it gave.
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

  /** What is used and as much again as in the last interval. */
  function renewForNext(): Promise<void> {
    const interval = Math.max(FIRST_INTERVAL_TOKENS, used.completionTokens - lastCompletion);
    const renewal = renew(used.completionTokens, used.completionTokens + interval);
    lastCompletion = used.completionTokens;
    return renewal;
  }

  const timer = setInterval(() => {
    renewForNext().catch((error: unknown) => {
      log.warn('A lease could not be renewed; the next interval tries again.', { requestId: ref.requestId, error });
    });
  }, RENEW_MS);
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
  /** A request was cancelled: one that runs here is checked at once, and one that this worker has taken as it starts. */
  hearCancel(requestId: string): Promise<void>;
  /** Checks all of them at once: then Redis knows what runs here. */
  checkAll(): Promise<unknown>;
}

/** A job that was taken has started by then, or was put back (shared/infra/queue/chat-backend.ts). */
const START_MS = 5_000;
/** Every worker of a shard hears of all that is cancelled there. */
const CANCELLED_MAX = 10_000;

/** Requests that were cancelled a moment ago and do not run here: the claim of one that starts may be older than that. */
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
   * A place is emptied as its request ends. V8 lets the table that a map has outgrown live on beside the next one, and
   * with it all that its values hold, until the next full collection.
   */
  const running = new Map<string, { lease: Lease | undefined }>();
  const cancelled = createCancelled();
  return {
    open(options) {
      const { requestId } = options.ref;
      const lease = create(options);
      // Redis says whether that was this run of it: an administrator may have it run again by then.
      if (cancelled.take(requestId)) lease.check().catch(() => undefined);
      const place: { lease: Lease | undefined } = { lease };
      running.set(requestId, place);
      return {
        ...lease,
        release() {
          // A later attempt at the same request may have taken its place.
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
