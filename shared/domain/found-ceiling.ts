import { CEILING_MAX, sumOf } from './capacity.ts';
import type { Capacity, CapacityReport, Share } from './capacity.ts';

/** Shares of calls that are late: up to which the ceiling grows, and from which it shrinks. */
const GROW_LATE_MAX = 0.1;
const SHRINK_LATE_MIN = 0.25;
/** Shares of the ceiling in use: for it to grow, and for late first tokens to be its fault. */
const GROW_USED_MIN = 0.7;
const SHRINK_USED_MIN = 0.5;
/** Share of calls that may be without a first token while the ceiling doubles. */
const DOUBLE_PENDING_MAX = 0.25;
/** One step of a proven ceiling, and the pause after it. */
const STEP = 0.1;
const HOLD_MIN_MS = 1_000;
const HOLD_SHRUNK_MS = 5_000;
const HOLD_MAX_MS = 60_000;
/** Left of the ceiling after a 429 of a provider that says nothing about its limits. */
const THROTTLED = 0.7;
/** Left at least after one step down. */
const SHRUNK_MIN = 0.25;
/** Shrinking helped if first tokens came in less than this share of the time before. */
const HELPED = 0.8;
/** The usual time follows faster first tokens more than slower ones: some prompts are in a provider's cache. */
const FASTER_WEIGHT = 0.2;
const SLOWER_WEIGHT = 0.02;
const SLOWNESS_WEIGHT = 0.3;

/** Compares the times of a report's first tokens with the usual ones; undefined: there were none. */
function slownessOf({ usualMs }: Capacity, { firsts }: CapacityReport): number | undefined {
  let expected = 0;
  let taken = 0;
  for (const [size, { count, ms }] of firsts.entries()) {
    const usual = usualMs[size] ?? null;
    if (usual === null || count === 0) continue;
    expected += usual * count;
    taken += ms;
  }
  return expected === 0 ? undefined : taken / expected;
}

/** Learns nothing from slow first tokens while the ceiling is in use: calls may wait inside the provider. */
export function learnTimes(capacity: Capacity, report: CapacityReport): Capacity {
  const isFull = sumOf(capacity.shares, 'used') >= capacity.found * SHRINK_USED_MIN;
  const usualMs = capacity.usualMs.map((usual, size) => {
    const { count, ms } = report.firsts[size] ?? { count: 0, ms: 0 };
    if (count === 0) return usual;
    const mean = Math.max(1, ms / count);
    if (usual === null) return mean;
    if (mean < usual) return usual + (mean - usual) * FASTER_WEIGHT;
    return isFull ? usual : usual + (mean - usual) * SLOWER_WEIGHT;
  });
  const slowness = slownessOf(capacity, report);
  if (slowness === undefined) return { ...capacity, usualMs };
  const before = capacity.slowness ?? slowness;
  return { ...capacity, usualMs, slowness: before + (slowness - before) * SLOWNESS_WEIGHT };
}

/** From here, only calls that begin later are evidence. */
function newEpoch(capacity: Capacity): Capacity {
  const shares: Record<string, Share> = {};
  for (const [worker, share] of Object.entries(capacity.shares)) shares[worker] = { ...share, newLate: 0 };
  return { ...capacity, epoch: capacity.epoch + 1, acks: 0, slowness: null, shares };
}

/** Lowers the ceiling to `found`, with longer pauses before the next steps up. */
function shrunk(capacity: Capacity, found: number, now: number): Capacity {
  const holdMs = Math.min(HOLD_MAX_MS, Math.max(HOLD_SHRUNK_MS, capacity.holdMs * 2));
  return { ...newEpoch(capacity), found: Math.max(1, Math.floor(found)), isProven: true, holdMs, growAt: now + holdMs };
}

/** Late first tokens show how many calls wait inside the provider. */
function afterLate(capacity: Capacity, report: CapacityReport, now: number): Capacity {
  const { shares, before, found } = capacity;
  const usual = capacity.usualMs.find((ms) => ms !== null) ?? 1;
  const slowness = Math.max(capacity.slowness ?? 1, report.newLateMs / usual);
  if (before !== null && slowness >= before.slowness * HELPED) {
    // Fewer calls were no faster: the provider itself has become slower, so its usual times are these.
    const usualMs = capacity.usualMs.map((ms) => (ms === null ? null : ms * slowness));
    return { ...newEpoch(capacity), found: before.found, before: null, usualMs };
  }
  const inside = sumOf(shares, 'inFlight') - sumOf(shares, 'late');
  const next = shrunk(capacity, Math.max(found * SHRUNK_MIN, Math.min(found, inside)), now);
  return { ...next, before: { found: before?.found ?? found, slowness } };
}

/** Doubles once all calls have their first token, as TCP's slow start does; a proven ceiling takes small steps. */
function grown(capacity: Capacity, now: number): Capacity {
  const { found, isProven, holdMs, growAt, shares, acks } = capacity;
  if (!isProven) {
    const isTaken = acks > 0 && sumOf(shares, 'pending') <= sumOf(shares, 'inFlight') * DOUBLE_PENDING_MAX;
    if (!isTaken && acks < found) return capacity;
    return { ...capacity, found: Math.min(CEILING_MAX, found * 2), acks: 0 };
  }
  if (now < growAt || acks < found) return capacity;
  const next = Math.max(HOLD_MIN_MS, holdMs / 2);
  const step = Math.max(1, Math.floor(found * STEP));
  return {
    ...capacity,
    found: Math.min(CEILING_MAX, found + step),
    acks: 0,
    holdMs: next,
    growAt: now + next,
    before: null,
  };
}

/** The ceiling may grow only then, so only then are first tokens needed as evidence. */
export function isInUse({ shares, found }: Capacity): boolean {
  return sumOf(shares, 'used') >= found * GROW_USED_MIN;
}

export function nextCeiling(capacity: Capacity, report: CapacityReport, now: number): Capacity {
  const { shares, found } = capacity;
  const [inFlight, used] = [sumOf(shares, 'inFlight'), sumOf(shares, 'used')];
  if (report.newThrottled > 0 && capacity.requests === null && capacity.tokens === null)
    // A 429 costs little, so the next steps up are not put off for longer.
    return shrunk({ ...capacity, holdMs: 0 }, Math.min(found, Math.max(report.throttled, inFlight)) * THROTTLED, now);
  const late = sumOf(shares, 'newLate');
  if (late > inFlight * SHRINK_LATE_MIN)
    return used >= found * SHRINK_USED_MIN ? afterLate(capacity, report, now) : capacity;
  const isWanted = Object.values(shares).some(({ waits }) => waits);
  return isWanted && sumOf(shares, 'late') <= inFlight * GROW_LATE_MAX && isInUse(capacity)
    ? grown(capacity, now)
    : capacity;
}
