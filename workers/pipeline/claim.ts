import { setTimeout as pause } from 'node:timers/promises';

import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import { holdRates } from '../../shared/domain/pricing.ts';
import { DEFAULT_RATES } from '../../shared/domain/routing.ts';
import type { RoutingTable } from '../../shared/domain/routing.ts';
import { FAULT, lineText } from '../../shared/contracts/events.ts';
import type { Usage } from '../../shared/contracts/events.ts';
import type { RequestEnvelope } from '../../shared/contracts/jobs.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ClaimedRequest, Hold, HoldRequest } from '../../shared/requests/delivery.ts';
import type { Delivery, RequestStore } from '../../shared/requests/delivery-store.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';
import type { WorkerEmitter } from './worker-events.ts';
import { boundReached, grantedTokens, holdFor, paidPart } from './spending.ts';
import type { HoldTerms } from './spending.ts';
import { Stopped } from './stage.ts';
import type { AnswerSoFar, Claimed, HandedRequest, Lease, Bound } from './stage.ts';

const POLL_MS = 250;
/** By this time after a reconnect every worker has replayed what it ended and renewed what it runs. */
export const REPLAYED_MS = 1_500;

export interface MayClaimDeps {
  requests: RequestStore;
  /** True if a shard's Redis has just come back: a lease that ran out meanwhile does not mean a dead worker. */
  hasReconnectedRecently: (shard: number, withinMs?: number) => boolean;
}

export interface ClaimDeps extends MayClaimDeps {
  requests: RequestStore;
  streams: StreamReader;
  routing: { current(): RoutingTable };
  openLease: (options: LeaseOptions) => Lease;
  pseudonyms: Pseudonyms;
  events: WorkerEmitter;
  log: Logger;
}

/**
 * Decides whether a delivery may claim its request. BullMQ hands a job out again when its lock runs out, but its worker
 * may live, cut off from Redis. While that one renews the lease, a later delivery gives up: claiming would end a stream
 * that has begun, and waiting would block a place. If it dies after all, the sweep finds its lease expired. The fence
 * keeps this safe; the check is a courtesy.
 */
export async function mayClaim(
  { requests, hasReconnectedRecently }: MayClaimDeps,
  { shard, requestId, fence }: HandedRequest,
): Promise<boolean> {
  const isFirst = fence === 1;
  while (hasReconnectedRecently(shard, isFirst ? REPLAYED_MS : undefined)) await pause(POLL_MS);
  return isFirst || (await requests.leaseLeftMs(shard, requestId)) === 0;
}

async function textSoFar(streams: StreamReader, { shard, requestId }: Delivery): Promise<string> {
  const entries = await streams.readFrom(shard, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas.map(lineText)).join('');
}

/** A provider keeps these apart by account, and all tenants have one: its users, and its cached prompts. */
const NAMES = ['user', 'safety_identifier', 'prompt_cache_key'];

/** Hides names: a provider that blocks one tenant's user must not meet another tenant's of the same name. */
function withHiddenNames(envelope: RequestEnvelope, pseudonyms: ClaimDeps['pseudonyms']): RequestEnvelope {
  const { tenantId, request } = envelope;
  const { passed } = request;
  if (passed === undefined || !NAMES.some((name) => name in passed)) return envelope;
  const given = NAMES.filter((name) => name in passed);
  const hidden = given.map((name) => [name, pseudonyms.ofUser(tenantId, String(passed[name]))] as const);
  return { ...envelope, request: { ...request, passed: { ...passed, ...Object.fromEntries(hidden) } } };
}

/** Reads what an earlier delivery has left of an answer; this one generated no text. */
async function answerSoFar(
  streams: StreamReader,
  delivery: Delivery,
  { sent, promptTokens }: ClaimedRequest,
): Promise<AnswerSoFar> {
  return {
    text: sent > 0 ? await textSoFar(streams, delivery) : '',
    unsent: [],
    asked: undefined,
    asks: [],
    promptTokens,
    provider: '',
    model: '',
    trace: { attempts: [] },
  };
}

/** Takes the request under a fence. Undefined: another delivery has it, or it has ended. */
export function createClaim(deps: ClaimDeps) {
  const { requests, streams, routing, openLease, pseudonyms, events, log } = deps;

  return async (handed: HandedRequest): Promise<Claimed | undefined> => {
    const { requestId, tenantId, fence, job } = handed;
    if (job?.claim === undefined && !(await mayClaim(deps, handed))) {
      log.debug('A job was handed out again and let go: the worker that has its request lives.', { requestId, fence });
      return undefined;
    }
    const claimed = await requests.claim(handed, job);
    if (claimed.kind === 'drop') {
      const reason = claimed.reason.replace(/^drop /, '');
      const message = 'A job was handed out again and let go: its request has an owner or an end.';
      log.debug(message, { requestId, fence, reason });
      return undefined;
    }
    const { delivery } = claimed;
    if (claimed.kind === 'unreadable') {
      const { error, retentionMs, request } = claimed;
      log.error('A request cannot be read and is ended.', { requestId, tenantId, error });
      // It cannot be priced either, so its hold is given back.
      const isEnded = await delivery.finish({
        status: 'failed',
        deltas: [],
        terminal: FAULT,
        costMicro: 0,
        retentionMs,
      });
      const how = { code: FAULT.error?.code, reason: 'its body cannot be read' };
      if (isEnded) events.emit('request.ended_early', request, how);
      return undefined;
    }
    const { seq, sent, now: claimedAt, remainingMs, held, terms } = claimed;
    const { tier, request } = claimed.envelope;
    const rates = claimed.rates ?? routing.current().tiers[tier]?.rates ?? DEFAULT_RATES[tier];
    const answer = await answerSoFar(streams, delivery, claimed);
    const interrupted = sent > 0 || handed.endOnly === true;
    const envelope = withHiddenNames(claimed.envelope, pseudonyms);
    // Whoever gets the run releases the lease, so from here on nothing may fail before that.
    const lease = openLease({ delivery, rates: holdRates(rates), maxTokens: request.maxTokens, remainingMs, held });
    if (claimed.cancelled) lease.stop('cancelled');
    const { onDisconnect } = terms;
    const run = { interrupted, delivery, job, envelope, seq, claimedAt, rates, onDisconnect, lease, answer };
    events.emit('request.claimed', run);
    return run;
  };
}

/** Less than a third of the lease, so that two renewals may fail before it ends. */
const RENEW_MS = 3_000;
/** Tokens expected before the first renewal, while the speed of the answer is unknown. */
const FIRST_INTERVAL_TOKENS = 100;
/** Minimum length of answer to ask for before a provider is called; any part that is granted is enough. */
const LEAST_ANSWER_TOKENS = 32;
/**
 * A positive balance always admits one request, whose prompt and first words may overrun it by this
 * (docs/spec.md#holds). Later text may, too, because its tokens are estimated; that is not charged.
 */
const OVERRUN_TOKENS = 100;

const NOTHING: Hold = { micro: 0, tokens: 0 };

interface LeaseOptions extends HoldTerms {
  delivery: Pick<Delivery, 'shard' | 'requestId' | 'renew'>;
  /** Milliseconds until the request's deadline. */
  remainingMs: number;
  held: Hold;
}

function createHoldings(terms: LeaseOptions) {
  let { held } = terms;
  /** The hold before later text overran a bound. */
  let chargeable: Hold | undefined;
  let used: Usage = { promptTokens: 0, completionTokens: 0 };
  /** Undefined: no target has been chosen, so nothing has to be held yet. */
  let promptTokens: number | undefined;
  let lastCompletion = 0;
  const holdOf = (tokens: number) => (promptTokens === undefined ? NOTHING : holdFor(terms, promptTokens, tokens));
  /** Expects as many tokens as in the last interval. */
  const nextInterval = () => Math.max(FIRST_INTERVAL_TOKENS, used.completionTokens - lastCompletion);
  const needs = (requiredTokens: number, preferredTokens: number, overdraft = NOTHING): HoldRequest => ({
    weight: used.promptTokens + Math.min(terms.maxTokens, used.completionTokens + nextInterval()),
    required: holdOf(requiredTokens),
    preferred: holdOf(preferredTokens),
    overdraft,
  });

  return {
    granted: (): number => grantedTokens(terms, held, promptTokens ?? 0),
    bound: (): Bound => boundReached(terms, held, promptTokens ?? 0),
    use: (usage: Usage): void => void (used = usage),
    begin(tokens: number): void {
      promptTokens = tokens;
      used = { promptTokens: tokens, completionTokens: 0 };
    },
    hold: (now: Hold): void => void (held = now),
    /** Later text overruns a bound: only what is held by now is charged. */
    overrun: (): void => void (chargeable ??= held),
    needs,
    /** Holds what has been used, plus what the next interval is expected to use. */
    needsOfNext(): HoldRequest {
      const needed = needs(used.completionTokens, used.completionTokens + nextInterval());
      lastCompletion = used.completionTokens;
      return needed;
    },
    /** The part of a usage that is covered; a hold that was overrun is not raised for it. */
    covered: (usage: Usage): Usage => paidPart(terms, chargeable ?? held, usage),
    mayRise: (): boolean => chargeable === undefined,
  };
}

/** Calls back every 3 s, one call at a time: while one waits for Redis, more would only pile up until Redis is back. */
function every3s(renew: () => Promise<void>): NodeJS.Timeout {
  let isRenewing = false;
  return setInterval(() => {
    if (isRenewing) return;
    isRenewing = true;
    void renew().finally(() => (isRenewing = false));
  }, RENEW_MS);
}

/**
 * Renews every 3 s, and raises hold and token weight to the tokens used so far plus the next interval's need. In
 * between it grants tokens out of credits, budget and allowance; each grant is twice what has been used, so an answer
 * needs few of them (docs/decisions/0009-holds-and-ledger.md).
 */
export function createLease(log: Logger, options: LeaseOptions): Lease {
  const { delivery, rates, maxTokens, remainingMs } = options;
  const { requestId } = delivery;
  const stopping = new AbortController();
  const { signal } = stopping;
  const holdings = createHoldings(options);
  const { granted, covered, needs } = holdings;
  const dearest = Math.max(rates.promptMicro, rates.completionMicro);
  const overdraft = { micro: OVERRUN_TOKENS * dearest, tokens: OVERRUN_TOKENS };

  function stop(reason: Stopped['reason'], bound?: Bound): void {
    stopping.abort(new Stopped(reason, bound));
  }

  function exhaust(): void {
    stop('exhausted', holdings.bound());
  }

  async function renew(needed: HoldRequest): Promise<void> {
    const renewal = await delivery.renew(needed);
    if (renewal.outcome !== 'superseded') holdings.hold(renewal.held);
    if (renewal.outcome !== 'ok') stop(renewal.outcome);
  }

  const renewForNext = () => renew(holdings.needsOfNext());
  const timer = every3s(() =>
    renewForNext().catch((error: unknown) => {
      log.warn('A lease could not be renewed; the next interval tries again.', { requestId, error });
    }),
  );
  const deadline = setTimeout(stop, Math.max(0, remainingMs), 'deadline');
  // At once, not by the timer: until it fired, a request that had waited too long could call its provider.
  if (remainingMs <= 0) stop('deadline');

  return {
    signal,
    stop,
    granted,
    need: holdings.use,
    exhaust,
    async cover(tokens, isNew) {
      holdings.begin(tokens);
      const least = Math.min(maxTokens, LEAST_ANSWER_TOKENS);
      // Vectors are no tokens, but their prompt has to be held.
      if (isNew || granted() < Math.max(1, least)) await renew(needs(least, maxTokens, overdraft));
      if (granted() === 0) exhaust();
      signal.throwIfAborted();
      return granted() === Infinity;
    },
    async grant(completionTokens) {
      try {
        const ahead = completionTokens * 2 + FIRST_INTERVAL_TOKENS;
        await renew(needs(completionTokens, ahead));
        if (granted() >= completionTokens || signal.aborted) return;
        holdings.overrun();
        await renew(needs(completionTokens, ahead, overdraft));
      } catch (error) {
        log.warn('A running request could not be granted more; it tries again.', { requestId, error });
        throw error;
      }
    },
    async payable(usage) {
      if (!holdings.mayRise() || covered(usage) === usage) return covered(usage);
      try {
        holdings.begin(usage.promptTokens);
        holdings.use(usage);
        await renew(needs(usage.completionTokens, usage.completionTokens));
      } catch (error) {
        const message = 'Redis did not say whether more is covered than is held; nothing beyond that is charged.';
        log.warn(message, { requestId, error });
      }
      return covered(usage);
    },
    check: renewForNext,
    release() {
      clearInterval(timer);
      clearTimeout(deadline);
    },
  };
}

export type OpenLeases = ReturnType<typeof createOpenLeases>;

/** By then a job that was taken has started, or was put back (workers/queue/job-source.ts). */
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

interface Place {
  shard: number;
  lease: Lease | undefined;
}

export function createOpenLeases(create: (options: LeaseOptions) => Lease) {
  /** Emptied when requests end: a table that a map has outgrown keeps its values until V8's next full collection. */
  const running = new Map<string, Place>();
  const cancelled = createCancelled();
  return {
    open(options: LeaseOptions): Lease {
      const { requestId, shard } = options.delivery;
      const lease = create(options);
      // Redis knows whether this run was cancelled: an administrator may have started the request anew.
      if (cancelled.take(requestId)) lease.check().catch(() => undefined);
      const place: Place = { shard, lease };
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
    /** Checks a request's lease at once; does nothing where the request does not run here. */
    check: (requestId: string): Promise<void> => running.get(requestId)?.lease?.check() ?? Promise.resolve(),
    /** A request that runs here is checked at once; one that this worker is about to start is checked then. */
    async onCancelled(requestId: string): Promise<void> {
      const lease = running.get(requestId)?.lease;
      if (lease === undefined) cancelled.add(requestId);
      else await lease.check();
    },
    /** Checks at once, so that Redis knows what runs here. */
    checkAll(isOf: (shard: number) => boolean): Promise<unknown> {
      const places = [...running.values()].filter(({ shard }) => isOf(shard));
      return Promise.allSettled(places.map(({ lease }) => lease?.check() ?? Promise.resolve()));
    },
  };
}
