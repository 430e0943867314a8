import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { BatchRow } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchCounts, WaitingLine } from '../../shared/infra/mongo/batches/batch-work-repository.ts';

/** What the leader knows of a batch that has not ended. All of it is read again when another process leads. */
export interface OpenBatch {
  row: BatchRow;
  /** Lines to be sent next, in order. */
  ready: WaitingLine[];
  /** Number of the last line that was read. */
  cursor: number;
  /** Every line has been read. */
  isRead: boolean;
  /** Lines whose request runs or waits in the lane, by number. */
  inFlight: Map<number, string>;
  counts: BatchCounts;
  /** What MongoDB was told last, as JSON. */
  noted: string;
  waitingFor: BatchWait | null;
  /** Nothing is sent before; milliseconds since the epoch. */
  notBefore: number;
  /** The lines that wait have been ended. */
  isClosed: boolean;
}

export function openBatch(row: BatchRow, counts: BatchCounts): OpenBatch {
  return {
    row,
    ready: [],
    cursor: -1,
    isRead: false,
    inFlight: new Map(),
    counts,
    noted: '',
    waitingFor: null,
    notBefore: 0,
    isClosed: false,
  };
}

/** Reads every line again: some are neither known nor ended. */
export function rewind(batch: OpenBatch): void {
  batch.ready = [];
  batch.cursor = -1;
  batch.isRead = false;
}

/** Nothing is left to send or to wait for. */
export function isAtRest({ ready, isRead, inFlight }: OpenBatch): boolean {
  return isRead && ready.length === 0 && inFlight.size === 0;
}
