import { addTo, emptyTally } from '../../domain/job-tally.ts';
import type { JobTally } from '../../domain/job-tally.ts';
import type { RedisClient } from '../connection.ts';

/** `prefix` has the hash tag. */
export interface HistoryKey {
  prefix: string;
  queue: string;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Counts ended jobs by the minute for the last hour, by the hour for as long as Bull Board can show. */
export type QueueHistory = ReturnType<typeof createQueueHistory>;

const MINUTES_KEPT_SECONDS = 2 * 3_600;
/** Bull Board shows this many days. */
export const DAYS_KEPT = 90;
const HOURS_KEPT_SECONDS = (DAYS_KEPT + 1) * 86_400;

/** Redis has a hash of the hour's minutes and one of the day's hours; a field is a beginning and its count's name. */
const minutesKey = ({ prefix, queue }: HistoryKey, time: number) =>
  `${prefix}:${queue}:history:minutes:${Math.floor(time / HOUR_MS)}`;
const hoursKey = ({ prefix, queue }: HistoryKey, time: number) =>
  `${prefix}:${queue}:history:hours:${Math.floor(time / DAY_MS)}`;

/** `c` completed, `f` failed, `w3` waited as long as bucket 3 says, `r3` ran so long. */
function countsOf(tally: JobTally): [string, number][] {
  const counts: [string, number][] = [
    ['c', tally.completed],
    ['f', tally.failed],
    ...[...tally.waited].map(([bucket, count]): [string, number] => [`w${bucket}`, count]),
    ...[...tally.ran].map(([bucket, count]): [string, number] => [`r${bucket}`, count]),
  ];
  return counts.filter(([, count]) => count > 0);
}

function addCount(tally: JobTally, what: string, count: number): void {
  const bucket = Number(what.slice(1));
  if (what === 'c') tally.completed += count;
  else if (what === 'f') tally.failed += count;
  else if (what.startsWith('w')) addTo(tally.waited, bucket, count);
  else addTo(tally.ran, bucket, count);
}

/** Fields are `<beginning>:<what>`, in units of `unitMs`. */
async function readTallies(
  client: RedisClient,
  keys: readonly string[],
  { from, to, unitMs }: { from: number; to: number; unitMs: number },
): Promise<Map<number, JobTally>> {
  const found = new Map<number, JobTally>();
  for (const fields of await Promise.all(keys.map((key) => client.hgetall(key)))) {
    for (const [field, count] of Object.entries(fields)) {
      const [beginning = '', what = ''] = field.split(':');
      const time = Number(beginning) * unitMs;
      if (time + unitMs <= from || time > to) continue;
      const tally = found.get(time) ?? emptyTally();
      addCount(tally, what, Number(count));
      found.set(time, tally);
    }
  }
  return found;
}

function keysWithin(from: number, to: number, stepMs: number, keyAt: (time: number) => string): string[] {
  const keys: string[] = [];
  for (let time = Math.floor(from / stepMs) * stepMs; time <= to; time += stepMs) keys.push(keyAt(time));
  return keys;
}

export function createQueueHistory(client: RedisClient) {
  return {
    /** Adds what ended at `time`. A Redis that is away misses it. */
    async add(place: HistoryKey, time: number, tally: JobTally): Promise<void> {
      const minutes = minutesKey(place, time);
      const hours = hoursKey(place, time);
      const minute = Math.floor(time / MINUTE_MS);
      const hour = Math.floor(time / HOUR_MS);
      const counts = countsOf(tally);
      const ofMinute = counts.filter(([what]) => what === 'c' || what === 'f');
      // They share a write; a transaction would only add its refusal in a full Redis.
      await Promise.all([
        ...ofMinute.map(([what, count]) => client.hincrby(minutes, `${minute}:${what}`, count)),
        client.expire(minutes, MINUTES_KEPT_SECONDS),
        ...counts.map(([what, count]) => client.hincrby(hours, `${hour}:${what}`, count)),
        client.expire(hours, HOURS_KEPT_SECONDS),
      ]);
    },
    /** By minute since `from`; a minute without any has no entry. */
    minutes: (place: HistoryKey, from: number, to: number): Promise<Map<number, JobTally>> =>
      readTallies(
        client,
        keysWithin(from, to, HOUR_MS, (time) => minutesKey(place, time)),
        { from, to, unitMs: MINUTE_MS },
      ),
    hours(place: HistoryKey, from: number, to: number): Promise<Map<number, JobTally>> {
      const since = Math.max(from, to - DAYS_KEPT * DAY_MS);
      const keys = keysWithin(since, to, DAY_MS, (time) => hoursKey(place, time));
      return readTallies(client, keys, { from: since, to, unitMs: HOUR_MS });
    },
  };
}
