import { isEndedBatch } from '../../../shared/contracts/batches.ts';
import type { BatchRow } from '../../../shared/infra/mongo/batches/batch-repository.ts';
import { toSeconds, toSecondsOrNull } from '../../contract/unix-seconds.ts';

/** A batch that still arrives ends when it has, if that was asked for. */
function statusOf({ status, cancelledAt }: BatchRow): BatchRow['status'] {
  return status === 'validating' && cancelledAt !== undefined ? 'cancelling' : status;
}

/** `batch` (docs/spec/contract.md section 3). */
export function toBatchResource(row: BatchRow) {
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
    cancelled_at: toSecondsOrNull(row.cancelledAt),
    completed_at: toSecondsOrNull(row.endedAt),
  };
}
