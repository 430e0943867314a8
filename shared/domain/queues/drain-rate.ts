/** Long enough to be a rate, short enough to be of the moment. */
const WINDOW_MS = 60_000;

/**
 * Jobs a second that a lane ended lately. `finishedAtMs` are the latest ends that are still known: where they all lie
 * within the last minute there may have been more before them, so the rate is taken over the time they span.
 */
export function drainRatePerSecond(finishedAtMs: readonly number[], nowMs: number): number {
  const recent = finishedAtMs.filter((time) => nowMs - time <= WINDOW_MS);
  if (recent.length === 0) return 0;
  const oldest = recent.reduce((least, time) => Math.min(least, time), nowMs);
  const complete = recent.length < finishedAtMs.length;
  const spanMs = complete ? WINDOW_MS : Math.max(1_000, nowMs - oldest);
  return Math.round((recent.length / spanMs) * 1_000 * 1_000) / 1_000;
}
