import { isEndedBatch } from '../../../shared/contracts/batches.ts';
import type { BatchStatus, BatchWait } from '../../../shared/contracts/batches.ts';
import type { BatchRow } from '../../../shared/mongo/batches/batch-repository.ts';
import {
  constant,
  id,
  integer,
  named,
  nullable,
  object,
  oneOf,
  oneOfType,
  pageSchema,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
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

const fields = {
  id: id('batch'),
  object: constant('batch'),
  created_at: time(),
  status: batchStatusSchema,
  request_counts: object({
    total: integer(undefined, 0),
    completed: integer(undefined, 0),
    failed: integer(undefined, 0),
  }),
  waiting_for: nullable(waitSchema),
  metadata: { type: ['object', 'null'], description: "The batch's own `metadata`." },
  key_id: id('key'),
  mode: oneOf(['live', 'test']),
  started_at: nullable(time('Time at which the first request was sent')),
  expires_at: nullable(time('Time from which no request is sent any more')),
  estimated_completion_at: nullable(time('Time at which the last request may end, at the pace so far')),
  cancelled_at: nullable(time('Time of the cancellation')),
  completed_at: nullable(time('Time at which the last request ended')),
};
export const batchSchema = named('Batch', object(fields));
export const batchListSchema = named('BatchList', pageSchema(batchSchema));

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

export function toBatchResource(row: BatchRow, now: number) {
  return {
    id: row._id,
    object: 'batch',
    created_at: toSeconds(row.createdAt),
    status: statusOf(row),
    request_counts: { total: row.total, completed: row.completed, failed: row.failed },
    waiting_for: isEndedBatch(row.status) ? null : row.waitingFor,
    metadata: row.metadataJson === undefined ? null : (JSON.parse(row.metadataJson) as object),
    key_id: row.keyId,
    mode: row.mode,
    started_at: toSecondsOrNull(row.startedAt),
    expires_at: toSeconds(row.expiresAt),
    estimated_completion_at: toSecondsOrNull(estimatedEnd(row, now)),
    cancelled_at: toSecondsOrNull(row.cancelledAt),
    completed_at: toSecondsOrNull(row.endedAt),
  } satisfies FieldsOf<typeof fields>;
}

export const BATCH_EXAMPLE: ReturnType<typeof toBatchResource> = {
  id: PATH_PARAMETERS.batchId.example,
  object: 'batch',
  created_at: 1_795_255_200,
  status: 'in_progress',
  request_counts: { total: 2, completed: 1, failed: 0 },
  waiting_for: null,
  metadata: { job: 'nightly' },
  key_id: PATH_PARAMETERS.keyId.example,
  mode: 'live',
  started_at: 1_795_255_201,
  expires_at: 1_795_341_600,
  estimated_completion_at: 1_795_255_203,
  cancelled_at: null,
  completed_at: null,
};
