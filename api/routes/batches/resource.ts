import { isEndedBatch } from '../../../shared/contracts/batches.ts';
import type { BatchRow } from '../../../shared/infra/mongo/batch-rows.ts';

function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs / 1000);
}

/** A batch that still arrives ends when it has, if that was asked for. */
function statusOf({ status, cancelledAt }: BatchRow): BatchRow['status'] {
  return status === 'validating' && cancelledAt !== undefined ? 'cancelling' : status;
}

/** `batch` (contract.md section 3). */
export function toBatchResource(row: BatchRow) {
  return {
    id: row._id,
    object: 'batch',
    created_at: seconds(row.createdAt),
    status: statusOf(row),
    request_counts: { total: row.total, completed: row.completed, failed: row.failed },
    waiting_for: isEndedBatch(row.status) ? null : row.waitingFor,
    metadata: row.metadataJson === undefined ? null : (JSON.parse(row.metadataJson) as object),
    key_id: row.keyId,
    mode: row.mode,
    started_at: seconds(row.startedAt),
    expires_at: seconds(row.expiresAt),
    cancelled_at: seconds(row.cancelledAt),
    completed_at: seconds(row.endedAt),
  };
}
