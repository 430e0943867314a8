/** Usage is summed up in buckets of these widths, aligned to UTC. */
export const BUCKET_MS = { '1m': 60_000, '1h': 3_600_000, '1d': 86_400_000 } as const;
export type BucketWidth = keyof typeof BUCKET_MS;

export const BUCKET_WIDTHS = Object.keys(BUCKET_MS) as BucketWidth[];

/** Sums by the minute are kept this long. */
export const MINUTES_KEPT_MS = 35 * 86_400_000;

/** The start of the bucket that a time falls into; milliseconds since the epoch. */
export function bucketStart(timeMs: number, width: BucketWidth): number {
  return Math.floor(timeMs / BUCKET_MS[width]) * BUCKET_MS[width];
}

/** The start of the first bucket that is wholly at or after a time. */
export function bucketEnd(timeMs: number, width: BucketWidth): number {
  return Math.ceil(timeMs / BUCKET_MS[width]) * BUCKET_MS[width];
}

/** The start of the calendar month (UTC) that a time falls into. */
export function monthStart(timeMs: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}
