import { isEndedBatch } from '../../../shared/contracts/batches.ts';
import type { BatchStatus, BatchWait } from '../../../shared/contracts/batches.ts';
import type { BatchRow } from '../../../shared/mongo/batches/batch-repository.ts';
import {
  field,
  id,
  integer,
  kind,
  named,
  nullable,
  object,
  oneOf,
  oneOfType,
  resource,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

export const batchStatusSchema = named(
  'BatchStatus',
  oneOfType<BatchStatus>({
    validating: true,
    in_progress: true,
    completed: true,
    failed: true,
    expired: true,
    cancelling: true,
    cancelled: true,
  }),
);

const waitSchema = oneOfType<BatchWait>(
  {
    tpm: true,
    credits: true,
    budget: true,
    daily_requests: true,
    test_tokens: true,
    account: true,
    queue: true,
    provider: true,
  },
  'What keeps the next request from being sent.',
);

/** A batch that is cancelled while it arrives ends once it has arrived completely. */
function statusOf({ status, cancelledAt }: BatchRow): BatchRow['status'] {
  return status === 'validating' && cancelledAt !== undefined ? 'cancelling' : status;
}

/** Assumes the pace so far; undefined before the first request has ended and after the last one. */
function estimatedEnd({ status, startedAt, total, completed, failed, expiresAt }: BatchRow, now: number) {
  const ended = completed + failed;
  if (status !== 'in_progress' || startedAt === undefined || ended === 0 || now <= startedAt) return undefined;
  return Math.min(expiresAt, startedAt + ((now - startedAt) * total) / ended);
}

export const batchResource = resource<[row: BatchRow, now: number]>('Batch', {
  id: field(id('batch'), PATH_PARAMETERS.batchId.example, (row) => row._id),
  object: kind('batch'),
  created_at: field(time(), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  status: field(batchStatusSchema, 'in_progress', statusOf),
  request_counts: field(
    object({ total: integer(undefined, 0), completed: integer(undefined, 0), failed: integer(undefined, 0) }),
    { total: 2, completed: 1, failed: 0 },
    ({ total, completed, failed }) => ({ total, completed, failed }),
  ),
  waiting_for: field(nullable(waitSchema), null, (row) => (isEndedBatch(row.status) ? null : row.waitingFor)),
  metadata: field(
    { type: ['object', 'null'], description: "The batch's own `metadata`." },
    { job: 'nightly' },
    ({ metadataJson }) => (metadataJson === undefined ? null : JSON.parse(metadataJson)),
  ),
  key_id: field(id('key'), PATH_PARAMETERS.keyId.example, (row) => row.keyId),
  mode: field(oneOf(['live', 'test']), 'live', (row) => row.mode),
  started_at: field(nullable(time('Time at which the first request was sent')), 1_795_255_201, (row) =>
    toSecondsOrNull(row.startedAt),
  ),
  expires_at: field(nullable(time('Time from which no request is sent any more')), 1_795_341_600, (row) =>
    toSeconds(row.expiresAt),
  ),
  estimated_completion_at: field(
    nullable(time('Time at which the last request may end, at the pace so far')),
    1_795_255_203,
    (row, now) => toSecondsOrNull(estimatedEnd(row, now)),
  ),
  cancelled_at: field(nullable(time('Time of the cancellation')), null, (row) => toSecondsOrNull(row.cancelledAt)),
  completed_at: field(nullable(time('Time at which the last request ended')), null, (row) =>
    toSecondsOrNull(row.endedAt),
  ),
});
