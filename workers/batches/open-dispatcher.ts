import { createBatchWorkRepository } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { createPrincipalRepository } from '../../shared/infra/mongo/tenants/principal-repository.ts';
import { createAnswerCache } from '../../shared/infra/redis/requests/answer-cache.ts';
import { createBatchQueue } from '../../shared/infra/redis/requests/queue-store.ts';
import type { ChatQueues } from '../../shared/infra/queue/chat-queue.ts';
import type { LeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import type { EventSink } from '../../shared/webhooks/event-sink.ts';
import type { WorkerEventBus } from '../worker-events.ts';
import { createCloseBatch } from './close-batch.ts';
import { createCollectEnds } from './collect-ends.ts';
import { createDispatcher } from './dispatcher.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createFailedTries } from './failed-tries.ts';
import { createFillQueue } from './fill-queue.ts';
import { openSendLine } from './open-send-line.ts';
import type { OpenSendLineDeps } from './open-send-line.ts';
import { createProviderWatch } from './provider-watch.ts';
import type { ProviderWatch, ProviderWatchDeps } from './provider-watch.ts';
import { createReadLines } from './read-lines.ts';

interface OpenWatchDeps extends Omit<ProviderWatchDeps, 'now'> {
  telemetry: Pick<WorkerEventBus, 'on'>;
}

export interface OpenDispatcherDeps extends OpenSendLineDeps, Omit<OpenWatchDeps, 'routing'> {
  queues: ChatQueues;
  leases: LeaderLease;
  events: Pick<EventSink, 'publish'>;
  hasReconnectedRecently: (shard: number) => boolean;
  /** How long an answer is kept for its reader. */
  retentionMs: number;
}

function openProviderWatch({ routing, breakers, telemetry, log }: OpenWatchDeps): ProviderWatch {
  const watch = createProviderWatch({ routing, breakers, now: () => performance.now(), log });
  // What anybody's request finds out about a provider counts for lines, too.
  telemetry.on('request.finished', ({ envelope, answer }) => {
    watch.noteEnd(envelope.tier, answer.trace, false);
  });
  return watch;
}

/** Puts together what runs batches: see dispatcher.ts for what it does. */
export function openDispatcher(deps: OpenDispatcherDeps): Dispatcher {
  const { mongo, redis, keyspace, queues, admissions, leases, events, recentWrites, hasReconnectedRecently } = deps;
  const { retentionMs, clock, log } = deps;
  const work = createBatchWorkRepository(mongo);
  const queue = createBatchQueue(redis, keyspace);
  const failedTries = createFailedTries({ admissions, recentWrites });
  const lines = createReadLines({ work, queue, failedTries });
  const watch = openProviderWatch(deps);
  return createDispatcher({
    work,
    fillQueue: createFillQueue({
      work,
      queue,
      countWaiting: (shard) => queues.queue(shard, 'batch').getJobCountByTypes('waiting', 'prioritized'),
      lines,
      watch,
      clock,
      principals: createPrincipalRepository(mongo),
      sendLine: openSendLine(deps, watch),
    }),
    collectEnds: createCollectEnds({
      work,
      queue,
      lines,
      failedTries,
      watch,
      answers: createAnswerCache(redis, keyspace),
      retentionMs,
      clock,
      random: Math.random,
      log,
    }),
    queue,
    closeBatch: createCloseBatch({ work, admissions, queue, lines, events, recentWrites, clock, log }),
    watch,
    leases,
    hasReconnectedRecently,
    clock,
    log,
  });
}
