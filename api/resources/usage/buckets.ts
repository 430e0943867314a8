import { BUCKET_MS, MINUTES_KEPT_MS } from '../../../shared/domain/usage/roll-up.ts';
import type { BucketWidth } from '../../../shared/domain/usage/roll-up.ts';

/** How many buckets a page has: as at OpenAI, but a page of days holds the month that is asked for by default. */
export const LIMITS: Record<BucketWidth, { usual: number; max: number }> = {
  '1m': { usual: 60, max: 1_440 },
  '1h': { usual: 24, max: 168 },
  '1d': { usual: 31, max: 366 },
};

export const MINUTES_KEPT_DAYS = MINUTES_KEPT_MS / BUCKET_MS['1d'];

export const BUCKET_WIDTHS = Object.keys(BUCKET_MS) as BucketWidth[];

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
