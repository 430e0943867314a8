import { BUCKET_MS } from '../../../shared/domain/usage/roll-up.ts';
import type { BucketWidth } from '../../../shared/domain/usage/roll-up.ts';

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

/** The start of the calendar month (UTC) after the one that a time falls into. */
export function nextMonthStart(timeMs: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
