/** How the attempts of a short stretch of time ended. */
export interface Slice {
  /** The beginning; milliseconds since the epoch. */
  at: number;
  ok: number;
  /** How many failed, by reason. */
  failed: Record<string, number>;
}

/** A window is kept in this many slices, so an attempt leaves it at most a thirtieth of the window early. */
const SLICES = 30;

/** Notes one attempt in `slices` (oldest first) and drops slices older than the window. No reason: it succeeded. */
export function noteAttempt(slices: Slice[], reason: string | undefined, windowMs: number, now: number): void {
  const sliceMs = Math.ceil(windowMs / SLICES);
  const at = Math.floor(now / sliceMs) * sliceMs;
  let slice = slices.at(-1);
  if (slice?.at !== at) {
    slice = { at, ok: 0, failed: {} };
    slices.push(slice);
    // Slices that lie ahead were noted before the clock was set back.
    while (slices[0] !== undefined && (slices[0].at < now - windowMs || slices[0].at > now + sliceMs)) slices.shift();
  }
  if (reason === undefined) slice.ok += 1;
  else slice.failed[reason] = (slice.failed[reason] ?? 0) + 1;
}

export function addFailures(counts: Record<string, number>, more: Record<string, number>): Record<string, number> {
  const sum = { ...counts };
  for (const [reason, count] of Object.entries(more)) sum[reason] = (sum[reason] ?? 0) + count;
  return sum;
}

/** The slices of several observers as one window, oldest first, without what began before `oldest`. */
export function mergeSlices(slices: readonly Slice[], more: readonly Slice[], oldest: number): Slice[] {
  const merged = new Map<number, Slice>();
  for (const slice of [...slices, ...more]) {
    if (slice.at < oldest) continue;
    const before = merged.get(slice.at) ?? { at: slice.at, ok: 0, failed: {} };
    merged.set(slice.at, {
      at: slice.at,
      ok: before.ok + slice.ok,
      failed: addFailures(before.failed, slice.failed),
    });
  }
  return [...merged.values()].sort((a, b) => a.at - b.at);
}

export interface Totals {
  attempts: number;
  failures: number;
  /** The failures by reason. */
  errors: Record<string, number>;
}

/** The sum of the slices that began at `oldest` or later. */
export function totalsOf(slices: readonly Slice[], oldest: number): Totals {
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

/** The most frequent reason. */
export function mainReason(errors: Record<string, number>): string {
  const [first] = Object.entries(errors).sort(([, a], [, b]) => b - a);
  return first?.[0] ?? 'failures';
}
