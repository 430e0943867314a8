import type { BatchStatus, BatchWait } from '../../../contracts/batches.ts';
import type { KeyMode } from '../../../contracts/jobs.ts';
import type { EndedAnswer } from '../../../contracts/kept-answer.ts';
import type { ErrorDetail } from '../../../errors/error-body.ts';

/** Times are milliseconds since the epoch. */
export interface BatchRow {
  _id: string;
  tenantId: string;
  shard: number;
  /** The key whose limits its lines take from. */
  keyId: string;
  mode: KeyMode;
  status: BatchStatus;
  metadataJson?: string;
  /** Lines; 0 until all of them have arrived. */
  total: number;
  completed: number;
  failed: number;
  waitingFor: BatchWait | null;
  createdAt: number;
  /** What has not run by then is not run any more. */
  expiresAt: number;
  startedAt?: number;
  /** The run under an `Idempotency-Key` that has started it: there is one batch of it. */
  startedUnder?: string;
  cancelledAt?: number;
  endedAt?: number;
  /** Its shard, while somebody has to look after it: until it has ended and that has been told. */
  openShard?: number;
  /** When MongoDB forgets it. */
  removeAt: Date;
}

/** `_id` is the batch's id and the line's number, so that a line that is written twice is there once. */
export interface BatchLineRow {
  _id: string;
  tenantId: string;
  batchId: string;
  /** From 0, in the order of the body. */
  index: number;
  /** Null: the line has none that can be read. */
  customId: string | null;
  requestId: string;
  entityId?: string;
  state: 'waiting' | 'completed' | 'failed';
  /** Its ChatRequest as JSON, until it has ended. */
  requestJson?: string;
  /** How it ended, where it did not run. */
  error?: ErrorDetail;
  /** How it ended, where it ran. */
  fields?: EndedAnswer['fields'];
  entries?: EndedAnswer['entries'];
  removeAt: Date;
}
