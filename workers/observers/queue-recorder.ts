import { addTo, bucketOf, emptyTally } from '../../shared/domain/job-tally.ts';
import type { JobTally } from '../../shared/domain/job-tally.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import { createQueueHistory } from '../../shared/redis/stores/queue-history.ts';
import type { HistoryKey, QueueHistory } from '../../shared/redis/stores/queue-history.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { WorkerEventBus } from '../pipeline/worker-events.ts';

interface EndedJob {
  hasFailed: boolean;
  waitedMs: number;
  ranMs: number;
}

/** Counts in memory the jobs that this worker ends, and writes the counts to Redis every few seconds. */
export interface QueueRecorder {
  count(place: HistoryKey, ended: EndedJob): void;
  /** Writes the counts since the last flush. If that fails the charts miss them; nothing else uses them. */
  flush(): Promise<void>;
}

/** A job is counted in the minute in which it is written. */
const FLUSH_MS = 5_000;

function createQueueRecorder(history: QueueHistory, clock: Clock): QueueRecorder {
  let counted = new Map<string, { place: HistoryKey; tally: JobTally }>();

  return {
    count(place, { hasFailed, waitedMs, ranMs }) {
      const name = `${place.prefix}:${place.queue}`;
      const { tally } = counted.get(name) ?? { tally: emptyTally() };
      if (hasFailed) tally.failed += 1;
      else tally.completed += 1;
      addTo(tally.waited, bucketOf(waitedMs), 1);
      addTo(tally.ran, bucketOf(ranMs), 1);
      counted.set(name, { place, tally });
    },
    async flush() {
      const all = [...counted.values()];
      counted = new Map();
      const adding = all.map(({ place, tally }) => inTime(history.add(place, clock.now(), tally)));
      // The queues of a shard that is away keep those of no other waiting.
      const failed = (await Promise.allSettled(adding)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
  };
}

/** Counts requests as the pipeline ends them, not jobs, of which some are canaries. */
function recordRequests(events: WorkerEventBus, recorder: QueueRecorder, keyspace: Keyspace, clock: Clock): void {
  const claimedAt = new WeakMap<object, number>();
  events.on('request.claimed', ({ envelope }) => {
    claimedAt.set(envelope, clock.now());
  });
  events.on('request.finished', ({ envelope, delivery: { shard, queue } }, { error }) => {
    const now = clock.now();
    const startedAt = claimedAt.get(envelope) ?? now;
    recorder.count(
      { prefix: keyspace.shard(shard).tag, queue },
      {
        hasFailed: error !== undefined,
        waitedMs: Math.max(0, startedAt - envelope.acceptedAt),
        ranMs: Math.max(0, now - startedAt),
      },
    );
  });
}

interface QueueRecorderDeps {
  redis: RedisClient;
  keyspace: Keyspace;
  events: WorkerEventBus;
  clock: Clock;
  closer: Closer;
  log: Logger;
}

export function openQueueRecorder({ redis, keyspace, events, clock, closer, log }: QueueRecorderDeps): QueueRecorder {
  const recorder = createQueueRecorder(createQueueHistory(redis), clock);
  recordRequests(events, recorder, keyspace, clock);
  const recording = repeat(
    recorder.flush,
    () => FLUSH_MS,
    (error) => {
      log.debug('What ended in the queues could not be counted.', { error });
    },
  );
  closer.defer('queue history', async () => {
    await recording.stop();
    await recorder.flush();
  });
  return recorder;
}
