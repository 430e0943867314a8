/** Times of resources: Unix seconds, from milliseconds since the epoch. */
export function toSeconds(timeMs: number): number {
  return Math.floor(timeMs / 1000);
}

/** The same of a time that there may not be. */
export function toSecondsOrNull(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : toSeconds(timeMs);
}
