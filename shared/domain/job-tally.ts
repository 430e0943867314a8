/** Jobs that ended in a queue during some time. Durations count in buckets, so that tallies can be added up. */
export interface JobTally {
  completed: number;
  failed: number;
  /** Bucket → jobs that waited, or ran, that long. */
  waited: Map<number, number>;
  ran: Map<number, number>;
}

export function emptyTally(): JobTally {
  return { completed: 0, failed: 0, waited: new Map(), ran: new Map() };
}

/** Upper bounds in milliseconds. A request takes at most ten minutes; a batch's line waits for up to a day. */
const BOUNDS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Durations beyond all bounds count in the last bucket. */
export function bucketOf(durationMs: number): number {
  const bucket = BOUNDS_MS.findIndex((bound) => durationMs <= bound);
  return bucket === -1 ? BOUNDS_MS.length - 1 : bucket;
}

export function addTo(counts: Map<number, number>, bucket: number, count: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + count);
}

export function sumTallies(tallies: Iterable<JobTally>): JobTally {
  const sum = emptyTally();
  for (const { completed, failed, waited, ran } of tallies) {
    sum.completed += completed;
    sum.failed += failed;
    for (const [bucket, count] of waited) addTo(sum.waited, bucket, count);
    for (const [bucket, count] of ran) addTo(sum.ran, bucket, count);
  }
  return sum;
}

export function countOf(counts: ReadonlyMap<number, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** `percent` of the durations do not exceed it; they spread evenly within a bucket. 0 if none is counted. */
export function percentileMs(counts: ReadonlyMap<number, number>, percent: number): number {
  let before = 0;
  const rank = (countOf(counts) * percent) / 100;
  const buckets = [...counts].sort(([one], [other]) => one - other);
  for (const [bucket, count] of buckets) {
    const lower = BOUNDS_MS[bucket - 1] ?? 0;
    const upper = BOUNDS_MS[bucket] ?? lower;
    if (before + count >= rank) return Math.round(lower + ((upper - lower) * (rank - before)) / count);
    before += count;
  }
  return 0;
}
