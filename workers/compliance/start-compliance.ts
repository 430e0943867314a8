import type { Pseudonyms } from '../../shared/domain/pseudonyms.ts';
import { QUEUE_NAMES } from '../../shared/contracts/jobs.ts';
import type { OnEarlyEnd } from '../../shared/contracts/settlement.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { MongoConnection } from '../../shared/mongo/connection.ts';
import { createComplianceWorkRepository } from '../../shared/mongo/compliance/compliance-work-repository.ts';
import { createConversationEraser } from '../../shared/mongo/compliance/conversation-eraser.ts';
import { createCopyEraser } from '../../shared/mongo/compliance/copy-eraser.ts';
import type { ErasureRepository } from '../../shared/mongo/compliance/erasure-repository.ts';
import { createExportArchiveRepository } from '../../shared/mongo/compliance/export-archive-repository.ts';
import { createExportRows } from '../../shared/mongo/compliance/export-rows.ts';
import { createRecordEraser } from '../../shared/mongo/compliance/record-eraser.ts';
import { createTenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { ChatQueues } from '../../shared/queue/queues.ts';
import { createComplianceQueue } from '../../shared/queue/queues.ts';
import { createAcceptanceClock, createRecordStore } from '../../shared/requests/record-store.ts';
import { createRequestEraser } from '../../shared/requests/request-eraser.ts';
import type { RedisClient } from '../../shared/redis/connection.ts';
import type { Keyspace } from '../../shared/redis/keyspace.ts';
import type { LeaderLease } from '../../shared/redis/stores/leader-lease.ts';
import { createOutboxSearch } from '../../shared/requests/outbox.ts';
import type { ReplayLog } from '../../shared/redis/redis-return.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import { startDurableWork } from '../queue/durable-work.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import { createEraseRequests } from './erase-requests.ts';
import { createRunDeletion } from './run-deletion.ts';
import { createRunExport } from './run-export.ts';
import { createRunJob } from './run-job.ts';

export interface StartComplianceDeps {
  mongo: MongoConnection;
  redis: RedisClient;
  keyspace: Keyspace;
  queues: ChatQueues;
  pseudonyms: Pseudonyms;
  erasures: ErasureRepository;
  replayLog: ReplayLog;
  retentionMs: number;
  onEarlyEnd: OnEarlyEnd;
  events: EventSink;
  leases: LeaderLease;
  recorder: QueueRecorder;
  clock: Clock;
  closer: Closer;
  log: Logger;
}

/** A reader that missed the end of its stream looks for it after a second (api/relay/hub.ts). */
const QUIET_MS = 2_000;
/** At shutdown, a running job is stopped at once, and another worker starts it over. */
const CLOSING_MS = 5_000;

function eraseRequestsOf(deps: StartComplianceDeps) {
  const { mongo, redis, keyspace, queues, pseudonyms, replayLog, retentionMs, onEarlyEnd } = deps;
  return createEraseRequests({
    traces: createRequestEraser(redis, keyspace),
    outbox: createOutboxSearch(redis, keyspace),
    records: createRecordStore(redis, keyspace, { retentionMs, replayLog, onEarlyEnd }),
    known: createConversationEraser(mongo),
    async removeJob(shard, requestId) {
      // BullMQ refuses to remove a job that a worker holds; such a job ends with its request.
      for (const name of QUEUE_NAMES)
        await queues
          .queue(shard, name)
          .remove(requestId)
          .catch(() => 0);
    },
    pseudonyms,
  });
}

function runDeletionOf(deps: StartComplianceDeps) {
  const { mongo, redis, keyspace, pseudonyms, erasures, clock } = deps;
  return createRunDeletion({
    jobs: createComplianceWorkRepository(mongo),
    tenants: createTenantRepository(mongo),
    erasures,
    requests: eraseRequestsOf(deps),
    conversations: createConversationEraser(mongo),
    copies: createCopyEraser(mongo),
    records: createRecordEraser(mongo, pseudonyms),
    pseudonyms,
    acceptanceClock: createAcceptanceClock(redis, keyspace),
    clock,
    quietMs: QUIET_MS,
  });
}

/** Starts what a worker does for exports and deletions: their queue and its sweep. */
export function startCompliance(deps: StartComplianceDeps): void {
  const { mongo, redis, keyspace, events, clock, closer, log } = deps;
  const jobs = createComplianceWorkRepository(mongo);
  const queue = createComplianceQueue(redis, keyspace, (error) => {
    log.warn('The queue of exports and deletions reported an error.', { error });
  });
  closer.defer('compliance queue', () => queue.close());
  const stopping = new AbortController();
  const run = createRunJob({
    jobs,
    queue,
    kinds: {
      export: createRunExport({
        jobs,
        archives: createExportArchiveRepository(mongo),
        rowsOf: (subject) => createExportRows(mongo, subject),
        clock,
      }),
      deletion: runDeletionOf(deps),
    },
    events,
    clock,
    stopping: stopping.signal,
    log,
  });
  const work = startDurableWork(['compliance'], {
    ...deps,
    client: redis,
    run: (_name, job) => run(job),
    due: jobs.due,
    queue: queue.add,
  });
  closer.defer(
    'exports and deletions',
    async () => {
      stopping.abort();
      await work.close();
    },
    { limitMs: CLOSING_MS },
  );
}
