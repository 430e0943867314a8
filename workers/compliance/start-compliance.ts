import { QUEUE_NAMES } from '../../shared/contracts/jobs.ts';
import { createComplianceWorkRepository } from '../../shared/mongo/compliance/compliance-work-repository.ts';
import { createConversationEraser } from '../../shared/mongo/compliance/conversation-eraser.ts';
import { createCopyEraser } from '../../shared/mongo/compliance/copy-eraser.ts';
import { createExportArchiveRepository } from '../../shared/mongo/compliance/export-archive-repository.ts';
import { createExportRows } from '../../shared/mongo/compliance/export-rows.ts';
import { createRecordEraser } from '../../shared/mongo/compliance/record-eraser.ts';
import { createTenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import { createComplianceQueue } from '../../shared/queue/queues.ts';
import { createAcceptanceClock, createRecordStore } from '../../shared/requests/record-store.ts';
import { createRequestEraser } from '../../shared/requests/request-eraser.ts';
import { createOutboxSearch } from '../../shared/requests/outbox.ts';
import type { EventSink } from '../../shared/webhooks/publish.ts';
import { startDurableWork } from '../queue/durable-work.ts';
import type { QueueRecorder } from '../observers/queue-recorder.ts';
import type { WorkerParts } from '../pipeline/worker-parts.ts';
import { createEraseRequests } from './erase-requests.ts';
import { createRunDeletion } from './run-deletion.ts';
import { createRunExport } from './run-export.ts';
import { createRunJob } from './run-job.ts';

/** A reader that missed the end of its stream looks for it after a second (api/relay/hub.ts). */
const QUIET_MS = 2_000;
/** At shutdown, a running job is stopped at once, and another worker starts it over. */
const CLOSING_MS = 5_000;

function eraseRequestsOf(parts: WorkerParts) {
  const { mongo, redis, keyspace, queues, pseudonyms } = parts;
  return createEraseRequests({
    traces: createRequestEraser(redis, keyspace),
    outbox: createOutboxSearch(redis, keyspace),
    records: createRecordStore(redis, keyspace, parts),
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

function runDeletionOf(parts: WorkerParts) {
  const { mongo, redis, keyspace, pseudonyms } = parts;
  return createRunDeletion({
    ...parts,
    jobs: createComplianceWorkRepository(mongo),
    tenants: createTenantRepository(mongo),
    requests: eraseRequestsOf(parts),
    conversations: createConversationEraser(mongo),
    copies: createCopyEraser(mongo),
    records: createRecordEraser(mongo, pseudonyms),
    acceptanceClock: createAcceptanceClock(redis, keyspace),
    quietMs: QUIET_MS,
  });
}

export function startCompliance(parts: WorkerParts, recorder: QueueRecorder, events: EventSink): void {
  const { mongo, redis, keyspace, clock, closer, log } = parts;
  const jobs = createComplianceWorkRepository(mongo);
  const queue = createComplianceQueue(redis, keyspace, (error) => {
    log.warn('The queue of exports and deletions reported an error.', { error });
  });
  closer.defer('compliance queue', () => queue.close());
  const stopping = new AbortController();
  const run = createRunJob({
    ...parts,
    jobs,
    queue,
    kinds: {
      export: createRunExport({
        jobs,
        archives: createExportArchiveRepository(mongo),
        rowsOf: (subject) => createExportRows(mongo, subject),
        clock,
      }),
      deletion: runDeletionOf(parts),
    },
    events,
    stopping: stopping.signal,
  });
  const work = startDurableWork(['compliance'], {
    ...parts,
    recorder,
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
