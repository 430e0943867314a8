import type { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { MetricsHistoryProvider } from '@bull-board/api/typings/app';

import { countOf, percentileMs, sumTallies } from '../../../shared/domain/job-tally.ts';
import type { JobTally } from '../../../shared/domain/job-tally.ts';
import { DAY_MS, DAYS_KEPT, HOUR_MS, MINUTE_MS } from '../../../shared/redis/stores/queue-history.ts';
import type { HistoryKey, QueueHistory } from '../../../shared/redis/stores/queue-history.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';

type Provider = Required<Pick<MetricsHistoryProvider, 'getHistory' | 'getLatency'>>;
type QueueMetrics = Awaited<ReturnType<BullMQAdapter['getMetrics']>>;
type LatencyPoint = Awaited<ReturnType<Provider['getLatency']>>[number];
type Query = Pick<Parameters<Provider['getLatency']>[0], 'queue' | 'from' | 'to'>;

const STEP_MS = { hour: HOUR_MS, day: DAY_MS } as const;

function inSteps(hours: ReadonlyMap<number, JobTally>, stepMs: number): Map<number, JobTally> {
  const groups = Map.groupBy(hours, ([time]) => Math.floor(time / stepMs) * stepMs);
  return new Map([...groups].sort(([one], [other]) => one - other).map(([time, of]) => [time, sumOf(of)]));
}

const sumOf = (hours: Iterable<[number, JobTally]>) => sumTallies([...hours].map(([, tally]) => tally));

/** Bull Board's charts over days: what ended, how long it waited and ran. `places`: queues by the board's name. */
export function createBoardHistory(
  places: ReadonlyMap<string, HistoryKey>,
  history: QueueHistory,
  clock: Clock,
): Provider {
  async function hoursOf({ queue, from, to }: Query): Promise<Map<number, JobTally>> {
    const now = clock.now();
    const [since, until] = [Math.max(from, now - DAYS_KEPT * DAY_MS), Math.min(to, now)];
    const wanted = [...places].filter(([name]) => queue === undefined || queue === name);
    const all = await Promise.all(wanted.map(([, place]) => history.hours(place, since, until)));
    const byHour = Map.groupBy(
      all.flatMap((hours) => [...hours]),
      ([time]) => time,
    );
    return new Map([...byHour].map(([time, hours]) => [time, sumOf(hours)]));
  }

  return {
    async getHistory({ metric, granularity, ...query }) {
      const stepMs = STEP_MS[granularity];
      const steps = inSteps(await hoursOf(query), stepMs);
      // Steps in which nothing ended have no age, so they are left out.
      if (metric === 'queueage') {
        return [...steps].map(([ts, { waited }]) => ({ ts, value: percentileMs(waited, 100) }));
      }
      const [[first] = [Infinity]] = steps;
      const points: { ts: number; value: number }[] = [];
      for (let ts = first; ts <= Math.min(query.to, clock.now()); ts += stepMs) {
        points.push({ ts, value: steps.get(ts)?.[metric] ?? 0 });
      }
      return points;
    },

    async getLatency({ metric, granularity, percentiles, ...query }) {
      const hours = await hoursOf(query);
      const pointOf = (ts: number, { ran, waited }: JobTally): LatencyPoint => {
        const counts = metric === 'runtime' ? ran : waited;
        const values = percentiles.map((percent) => [String(percent), percentileMs(counts, percent)] as const);
        return { ts, count: countOf(counts), values: Object.fromEntries(values) };
      };
      const steps = granularity === 'range' ? undefined : inSteps(hours, STEP_MS[granularity]);
      const points = steps ?? (hours.size === 0 ? [] : [[query.from, sumOf(hours)] as const]);
      return [...points].map(([ts, tally]) => pointOf(ts, tally)).filter(({ count }) => count > 0);
    },
  };
}

/** The minutes that a queue's chart shows. */
const MINUTES = 60;

/** The last hour in the form of BullMQ's own metrics: full minutes, newest first, plus the count of the current one. */
export async function readMinutes(
  history: QueueHistory,
  place: HistoryKey,
  what: 'completed' | 'failed',
  now: number,
): Promise<QueueMetrics> {
  const current = Math.floor(now / MINUTE_MS) * MINUTE_MS;
  const minutes = await history.minutes(place, current - MINUTES * MINUTE_MS, now);
  const countAt = (back: number) => minutes.get(current - back * MINUTE_MS)?.[what] ?? 0;
  const data = Array.from({ length: MINUTES }, (_, back) => countAt(back + 1));
  const past = data.reduce((sum, count) => sum + count, 0);
  return { meta: { count: past + countAt(0), prevTS: now, prevCount: past }, data, count: data.length };
}
