import { CLOCKS_APART_MS } from './request-times.ts';

/** Attempts in a short stretch of time. */
export interface Slice {
  /** Milliseconds since the epoch. */
  at: number;
  ok: number;
  failed: Record<string, number>;
}

/** At this many slices a window, an attempt leaves at most a thirtieth of the window early. */
const SLICES = 30;

/** Notes one attempt in `slices` (oldest first) and drops older ones than the window. No reason: success. */
export function recordAttempt(slices: Slice[], reason: string | undefined, windowMs: number, now: number): void {
  const sliceMs = Math.ceil(windowMs / SLICES);
  const at = Math.floor(now / sliceMs) * sliceMs;
  let slice = slices.at(-1);
  if (slice?.at !== at) {
    slice = { at, ok: 0, failed: {} };
    slices.push(slice);
    // A clock that was set back leaves slices that lie ahead.
    while (slices[0] !== undefined && (slices[0].at < now - windowMs || slices[0].at > now + sliceMs)) slices.shift();
  }
  if (reason === undefined) slice.ok += 1;
  else slice.failed[reason] = (slice.failed[reason] ?? 0) + 1;
}

function addFailures(counts: Record<string, number>, more: Record<string, number>): Record<string, number> {
  const sum = { ...counts };
  for (const [reason, count] of Object.entries(more)) sum[reason] = (sum[reason] ?? 0) + count;
  return sum;
}

/** One window from several observers, oldest first, without slices that began before `oldest`. */
export function mergeSlices(slices: readonly Slice[], more: readonly Slice[], oldest: number): Slice[] {
  const merged = new Map<number, Slice>();
  for (const slice of [...slices, ...more]) {
    if (slice.at < oldest) continue;
    const before = merged.get(slice.at) ?? { at: slice.at, ok: 0, failed: {} };
    merged.set(slice.at, { at: slice.at, ok: before.ok + slice.ok, failed: addFailures(before.failed, slice.failed) });
  }
  return [...merged.values()].sort((a, b) => a.at - b.at);
}

/** Sums the slices that began at `oldest` or later. */
export function totalsOf(slices: readonly Slice[], oldest: number) {
  let ok = 0;
  let errors: Record<string, number> = {};
  for (const slice of slices) {
    if (slice.at < oldest) continue;
    ok += slice.ok;
    errors = addFailures(errors, slice.failed);
  }
  const failures = Object.values(errors).reduce((sum, count) => sum + count, 0);
  return { attempts: ok + failures, failures, errors };
}

export function mainReason(errors: Record<string, number>): string {
  const [first] = Object.entries(errors).sort(([, a], [, b]) => b - a);
  return first?.[0] ?? 'failures';
}

/**
 * A provider's circuit breaker as pure transitions: the same rules decide for the whole fleet (over the state in Redis)
 * and for one worker alone while Redis is unavailable.
 */
export type BreakerState = 'closed' | 'open' | 'half_open';

export interface BreakerSettings {
  /** Attempts count for this long. */
  windowMs: number;
  /** The breaker stays closed with fewer attempts in the whole fleet. */
  minAttempts: number;
  /** The share of failures that opens the breaker. */
  failureRatio: number;
  /** The pause before the first probe doubles with every probe that fails. */
  openMs: number;
  maxOpenMs: number;
}

/** docs/spec.md#routing. */
export const DEFAULT_BREAKER: Readonly<BreakerSettings> = {
  windowMs: 30_000,
  minAttempts: 10,
  failureRatio: 0.5,
  openMs: 10_000,
  maxOpenMs: 15_000,
};

/** Stored as JSON, so null stands for an absent value. */
export interface Breaker {
  /** Rises with every write. */
  version: number;
  state: BreakerState;
  /** Null: the state has never changed. */
  reason: string | null;
  since: number | null;
  /** Open: the next probe may go out then. */
  retryAt: number | null;
  /** The pause that ends at `retryAt`. */
  pauseMs: number;
  /** Half open: one call, whose worker must renew the probe by this time. */
  probe: { holder: string; until: number } | null;
  /** Closed: attempts in the fleet, as far as they had to be shared. */
  slices: Slice[];
  /** Closed: failures have been in the window since then. */
  failingSince: number | null;
  /** Not closed: the failures that opened the breaker, and those of its probes. */
  errors: Record<string, number>;
}

export const NEW_BREAKER: Readonly<Breaker> = {
  version: 0,
  state: 'closed',
  reason: null,
  since: null,
  retryAt: null,
  pauseMs: 0,
  probe: null,
  slices: [],
  failingSince: null,
  errors: {},
};

/** One worker's attempts, or that the provider refuses all our calls. */
export interface AttemptReport {
  slices: readonly Slice[];
  /** Opens the breaker at once: `authentication`, `payment_required`, `forbidden`. */
  refusal?: string | undefined;
}

/** `void`: the call says nothing about the provider, because it was cancelled or was itself faulty. */
export type ProbeResult = { kind: 'ok' } | { kind: 'void' } | { kind: 'failed'; reason: string };

/** After the first failure, the breaker decides once all workers have had this time to report. */
export const GATHER_MS = 250;

/** Another worker may repeat a probe whose worker gives no sign for this long. */
export const PROBE_LEASE_MS = 10_000;

function opened(
  breaker: Breaker,
  reason: string,
  pauseMs: number,
  errors: Record<string, number>,
  now: number,
): Breaker {
  return { ...breaker, ...CLEAR, state: 'open', reason, since: now, retryAt: now + pauseMs, pauseMs, errors };
}

const CLEAR = { retryAt: null, probe: null, slices: [], failingSince: null } as const satisfies Partial<Breaker>;

function closed(breaker: Breaker, reason: string, now: number): Breaker {
  return { ...breaker, ...CLEAR, slices: [], state: 'closed', reason, since: now, pauseMs: 0, errors: {} };
}

/** Counts only while the breaker is closed: late results of older calls change nothing. */
export function afterReport(
  breaker: Breaker,
  { slices: more, refusal }: AttemptReport,
  settings: BreakerSettings,
  now: number,
): Breaker {
  if (breaker.state !== 'closed') return breaker;
  const oldest = now - settings.windowMs;
  const slices = mergeSlices(
    // A clock that was set back leaves slices that lie further ahead.
    breaker.slices.filter(({ at }) => at <= now + CLOCKS_APART_MS),
    more,
    oldest,
  );
  const { attempts, failures, errors } = totalsOf(slices, oldest);
  if (refusal !== undefined)
    return opened(breaker, refusal, settings.openMs, addFailures(errors, { [refusal]: 1 }), now);
  const failingSince = failures === 0 ? null : Math.min(breaker.failingSince ?? now, now);
  const decides = failingSince !== null && now - failingSince >= GATHER_MS;
  if (decides && attempts >= settings.minAttempts && failures / attempts >= settings.failureRatio) {
    return opened(breaker, mainReason(errors), settings.openMs, errors, now);
  }
  return { ...breaker, slices, failingSince };
}

/** The window has failures, so every worker must report what it has seen. */
export function isFailing({ state, slices }: Breaker, settings: BreakerSettings, now: number): boolean {
  return state === 'closed' && totalsOf(slices, now - settings.windowMs).failures > 0;
}

/** Enough has failed to open the breaker, and other workers may report until then. */
export function decisionAt(breaker: Breaker, settings: BreakerSettings, now: number): number | undefined {
  if (breaker.state !== 'closed' || breaker.failingSince === null) return undefined;
  const { attempts, failures } = totalsOf(breaker.slices, now - settings.windowMs);
  const isEnough = attempts >= settings.minAttempts && failures / attempts >= settings.failureRatio;
  return isEnough ? Math.max(now, breaker.failingSince + GATHER_MS) : undefined;
}

export type Passage = { kind: 'call' } | { kind: 'probe' } | { kind: 'wait'; ms: number };

/** The next probe is free once the pause, or the lease of the last probe, is over. Waits are in milliseconds. */
export function passageOf({ state, retryAt, probe, pauseMs }: Breaker, now: number): Passage {
  if (state === 'closed') return { kind: 'call' };
  const freeAt = (state === 'open' ? retryAt : probe?.until) ?? now;
  const mostMs = (state === 'open' ? pauseMs : PROBE_LEASE_MS) + CLOCKS_APART_MS;
  if (freeAt <= now || freeAt - now > mostMs) return { kind: 'probe' };
  // A probe may take any time; it may close the breaker at any moment.
  return { kind: 'wait', ms: state === 'open' ? freeAt - now : Math.min(freeAt - now, 1_000) };
}

export function claimProbe(breaker: Breaker, holder: string, now: number): Breaker {
  if (passageOf(breaker, now).kind !== 'probe') return breaker;
  const since = breaker.state === 'open' ? now : breaker.since;
  return { ...breaker, state: 'half_open', since, retryAt: null, probe: { holder, until: now + PROBE_LEASE_MS } };
}

export function holdsProbe({ state, probe }: Breaker, holder: string): boolean {
  return state === 'half_open' && probe?.holder === holder;
}

/** Changes nothing if `holder` does not have the probe. */
export function renewProbe(breaker: Breaker, holder: string, now: number): Breaker {
  return holdsProbe(breaker, holder) ? { ...breaker, probe: { holder, until: now + PROBE_LEASE_MS } } : breaker;
}

/** Does nothing if another probe has replaced this one. A void result frees the place for the next probe. */
export function afterProbe(
  breaker: Breaker,
  holder: string,
  result: ProbeResult,
  settings: BreakerSettings,
  now: number,
): Breaker {
  if (!holdsProbe(breaker, holder)) return breaker;
  if (result.kind === 'void') return { ...breaker, probe: null };
  if (result.kind === 'ok') return closed(breaker, 'probe_succeeded', now);
  const pauseMs = Math.min(Math.max(breaker.pauseMs * 2, settings.openMs), settings.maxOpenMs);
  return opened(breaker, result.reason, pauseMs, addFailures(breaker.errors, { [result.reason]: 1 }), now);
}

/** An administrator closes the breaker, which drops its counts. */
export function afterReset(breaker: Breaker, now: number): Breaker {
  return breaker.state === 'closed' ? { ...breaker, slices: [], failingSince: null } : closed(breaker, 'reset', now);
}

/** For logs and events; the process that made the change reports it, once in the fleet. */
export interface BreakerChange {
  provider: string;
  from: BreakerState;
  to: BreakerState;
  reason: string;
  at: number;
  /** Open: the next probe may go out then. */
  retryAt: number | null;
  errors: Record<string, number>;
}

export function changeBetween(
  provider: string,
  before: Breaker,
  after: Breaker,
  at: number,
): BreakerChange | undefined {
  if (before.state === after.state) return undefined;
  const errors = after.state === 'closed' ? before.errors : after.errors;
  const { state, reason, retryAt } = after;
  return { provider, from: before.state, to: state, reason: reason ?? 'unknown', at, retryAt, errors };
}

/** Other processes should learn of these changes at once; they read any other within a second. */
export function isNews(before: Breaker, after: Breaker): boolean {
  return (
    before.state !== after.state ||
    before.probe?.holder !== after.probe?.holder ||
    (before.failingSince === null && after.failingSince !== null)
  );
}
