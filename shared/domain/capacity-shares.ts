import { CLOCKS_APART_MS } from './request-times.ts';
import { PAUSE_MAX_MS, SHARE_MS } from './capacity.ts';
import type { Allowance, Capacity, CapacityReport, SeenLimit, Share } from './capacity.ts';
import { learnTimes, nextCeiling } from './found-ceiling.ts';

const MINUTE_MS = 60_000;
/** Kept back from an allowance, so that errors of counting do not end in a 429. */
const KEPT_BACK = 0.02;
/** An estimate follows a provider that reports more at this rate, and one that reports less at once. */
const MORE_WEIGHT = 0.2;
/** Places beside those in use, for a worker that does not wait. */
const SPARE = 2;
const SPARE_PART = 0.25;

/** `outstanding`: granted to workers and not spent, as far as is known. */
function nextAllowance(
  known: Allowance | null,
  seen: SeenLimit | undefined,
  outstanding: number,
  now: number,
): Allowance | null {
  if (known === null) {
    return seen === undefined ? null : { limit: seen.limit, level: seen.remaining ?? seen.limit, at: now };
  }
  const limit = seen?.limit ?? known.limit;
  const passedMs = Math.min(MINUTE_MS, Math.max(0, now - known.at));
  let level = Math.min(limit, known.level + (limit * passedMs) / MINUTE_MS);
  if (seen?.remaining !== undefined) {
    const more = seen.remaining - (level + outstanding);
    level += more < 0 || limit < known.limit ? more : more * MORE_WEIGHT;
  }
  return { limit, level: Math.min(limit, level), at: now };
}

function grantable({ level, limit }: Allowance): number {
  return Math.max(0, level - limit * KEPT_BACK);
}

/** Meets small demands, then shares what is left evenly. */
function fairPart(demands: readonly number[], own: number, ceiling: number): number {
  const sorted = demands.toSorted((one, other) => one - other);
  let left = ceiling;
  for (const [index, demand] of sorted.entries()) {
    const part = left / (sorted.length - index);
    if (demand > part) return Math.min(own, part);
    left -= demand;
  }
  return own + left / sorted.length;
}

/** Some places are kept for what may come, unless others wait. */
function demandOf({ waits, inFlight, used }: Share, ceiling: number, isWanted: boolean): number {
  if (waits) return ceiling;
  return isWanted ? Math.max(used, inFlight) : Math.max(used, inFlight + Math.ceil(inFlight * SPARE_PART)) + SPARE;
}

/** Shares of other workers stay as they are until their next reports. */
function placesOf(shares: Record<string, Share>, report: CapacityReport, ceiling: number): number {
  const { worker, inFlight, leaves } = report;
  const own = shares[worker];
  if (own === undefined) return 0;
  const all = Object.values(shares);
  const others = all.filter((share) => share !== own);
  const held = others.reduce((sum, share) => sum + Math.max(share.places, share.inFlight), 0);
  const waiting = others.filter(({ waits }) => waits).map(({ places }) => places);
  const demands = all.map((share) => demandOf(share, ceiling, waiting.length > 0 || own.waits));
  const fair = fairPart(demands, demandOf(own, ceiling, waiting.length > 0 || own.waits), ceiling);
  const least = Math.min(...waiting);
  // Others lack their part while this worker has more; with fewer places than workers, they take turns.
  const isOverdue = fair < 1 ? least === 0 && own.places > 0 : least < Math.floor(fair);
  const part = leaves ? inFlight : isOverdue ? Math.floor(fair) : Math.ceil(fair);
  return Math.max(0, Math.min(part, ceiling - held));
}

/** Null: nothing limits it. */
function grant(allowance: Allowance | null, wanted: number): { left: Allowance | null; granted: number | null } {
  if (allowance === null) return { left: null, granted: null };
  const granted = Math.min(wanted, grantable(allowance));
  return { left: { ...allowance, level: allowance.level - granted }, granted };
}

function returned(allowance: Allowance | null, granted: number | null | undefined, spent: number): Allowance | null {
  return allowance === null ? null : { ...allowance, level: allowance.level + (granted ?? 0) - spent };
}

function livingShares(shares: Record<string, Share>, now: number): Record<string, Share> {
  // A clock that was set back leaves shares that last too long.
  return Object.fromEntries(
    Object.entries(shares).filter(([, { until }]) => until > now && until <= now + SHARE_MS + CLOCKS_APART_MS),
  );
}

function outstandingOf(shares: Record<string, Share>, what: 'requests' | 'tokens'): number {
  return Object.values(shares).reduce((sum, share) => sum + (share[what] ?? 0), 0);
}

/** Renews the worker's share. `set`: an administrator's ceiling; undefined: it is found. */
export function afterReport(current: Capacity, report: CapacityReport, set: number | undefined, now: number): Capacity {
  const { worker, inFlight, spent, limits, served } = report;
  const living = livingShares(current.shares, now);
  const own = living[worker];
  const isOfEpoch = report.epoch === current.epoch;
  const share: Share = {
    places: own?.places ?? 0,
    requests: own?.requests ?? null,
    tokens: own?.tokens ?? null,
    inFlight,
    used: report.used,
    pending: report.pending,
    late: report.late,
    waits: report.waits,
    newLate: isOfEpoch ? report.newLate : 0,
    until: now + SHARE_MS,
  };
  const shares = { ...living, [worker]: share };
  const allowed = (what: 'requests' | 'tokens') => {
    const outstanding = outstandingOf(living, what) - (own?.[what] ?? 0);
    return nextAllowance(returned(current[what], own?.[what], spent[what]), limits[what], outstanding, now);
  };
  const askedUntil = report.throttled > 0 ? now + report.retryAfterMs : 0;
  const seen: Capacity = {
    ...current,
    shares,
    acks: current.acks + served,
    // A clock that was set back leaves longer pauses.
    pausedUntil: Math.min(Math.max(current.pausedUntil, askedUntil), now + PAUSE_MAX_MS),
    servedAt: served > 0 ? now : current.servedAt,
    callTokens: report.callTokens > 0 ? report.callTokens : current.callTokens,
    requests: allowed('requests'),
    tokens: allowed('tokens'),
  };
  const learnt = isOfEpoch ? learnTimes(seen, report) : seen;
  const next = set === undefined && isOfEpoch ? nextCeiling(learnt, report, now) : learnt;
  if (report.leaves && inFlight === 0) {
    const rest = Object.entries(next.shares).filter(([name]) => name !== worker);
    return { ...next, shares: Object.fromEntries(rest) };
  }
  return withGrants(next, report, set ?? next.found);
}

/** Places, and what they need of the allowances. */
function withGrants(capacity: Capacity, report: CapacityReport, ceiling: number): Capacity {
  const { worker, inFlight, served } = report;
  const share = capacity.shares[worker];
  if (share === undefined) return capacity;
  const places = placesOf(capacity.shares, report, ceiling);
  const wanted = Math.max(0, places - inFlight) + 2 * served + 1;
  const requests = grant(capacity.requests, wanted);
  const calls = Math.min(wanted, requests.granted ?? wanted);
  const tokens = grant(capacity.tokens, calls * Math.max(1, capacity.callTokens));
  const renewed = { ...share, places, requests: requests.granted, tokens: tokens.granted };
  return {
    ...capacity,
    requests: requests.left,
    tokens: tokens.left,
    shares: { ...capacity.shares, [worker]: renewed },
  };
}
