import type { EndedAnswer } from '../../contracts/jobs.ts';
import type { OutageCode } from '../../domain/request-times.ts';
import type { ErrorDetail } from '../../errors/error-body.ts';
import { collection } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';

/** Failed tries without an answer of the provider; times are milliseconds since the epoch. */
export interface LineRetry {
  tries: number;
  /** Tries that failed while the provider answered others: the line itself may be the reason. */
  faults: number;
  failedAt: number;
  dueAt: number;
  requestId?: string;
}

/** `_id` has the batch's id and the line's number, so writing a line twice stores it once. */
export interface BatchLineRow extends RowOfSpace {
  _id: string;
  batchId: string;
  /** From 0, in the order of the body. */
  index: number;
  /** Null: absent or unreadable. */
  customId: string | null;
  requestId: string;
  entityId?: string;
  state: 'waiting' | 'completed' | 'failed';
  /** A ChatRequest as JSON. Removed when the line ends; with `failedAt`, when its batch ends. */
  requestJson?: string;
  /** The result of a line that failed without running. */
  error?: ErrorDetail;
  fields?: EndedAnswer['fields'];
  entries?: EndedAnswer['entries'];
  /** Failed for good in an outage. While its batch runs, an administrator may have it tried once more. */
  failedAt?: number;
  failedCode?: OutageCode;
  retry?: LineRetry;
  removeAt: Date;
}

export const batchLineModel = collection<BatchLineRow>('batch_lines', [
  [{ batchId: 1, index: 1 }],
  [{ failedAt: 1 }, { sparse: true }],
  [{ tenantId: 1, entityId: 1 }],
  [{ removeAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** The entity of such a line was deleted before the line had an answer. */
export const ENTITY_GONE: ErrorDetail = { code: 'gone', message: 'The entity of this line was deleted.' };

/** No further answer is read once this much is in memory. One may have ten megabytes. */
export const ANSWERS_BYTES = 8 * 1024 * 1024;

export const bytesOfEntries = (entries: EndedAnswer['entries'] = []) =>
  entries.reduce((sum, { payload }) => sum + payload.length, 0);

export function batchLineId(batchId: string, index: number): string {
  return `${batchId}:${String(index).padStart(5, '0')}`;
}
