import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { BatchRow } from '../../shared/infra/mongo/batches/batch-repository.ts';
import type { BatchCounts, WaitingLine } from '../../shared/infra/mongo/batches/batch-work-repository.ts';
import { createLineTokens } from './line-tokens.ts';
import type { LineTokens } from './line-tokens.ts';

/** A line that may be sent, and what is known of it beside its row. */
export interface OpenLine extends WaitingLine {
  /** Known once its request has been read. */
  tier?: Tier;
  /** It finds out whether its tier answers again. */
  isProbe?: boolean;
  /** Of its request as JSON, once it has been read. */
  length?: number;
  /** Since when it has waited for tokens of its key; by `performance.now`. */
  waitsSince?: number;
}

/** A line whose request runs or waits in the queue. */
export interface SentLine extends WaitingLine {
  /** As estimated when it was sent; unknown where an earlier leader has sent it. */
  promptTokens?: number;
  /** Its end has been noted of its provider. */
  isNoted?: boolean;
}

/** What the leader knows of a batch that has not ended. All of it is read again when another process leads. */
export interface OpenBatch {
  row: BatchRow;
  /** Lines to be sent next, in order. */
  ready: OpenLine[];
  /** Lines that wait for their next try, or for a provider of their tier. */
  later: OpenLine[];
  /** Number of the last line that was read. */
  cursor: number;
  /** Every line has been read. */
  isRead: boolean;
  /** Lines whose request runs or waits in the queue, by number. */
  inFlight: Map<number, SentLine>;
  tokens: LineTokens;
  counts: BatchCounts;
  /** What MongoDB was told last, as JSON. */
  noted: string;
  waitingFor: BatchWait | null;
  /** Nothing is sent before; by `performance.now`. */
  notBefore: number;
  /** When a line was refused; 0: none since this or another batch of the tenant has sent. By `performance.now`. */
  refusedAt: number;
  /** The lines that wait have been ended. */
  isClosed: boolean;
}

export function openBatch(row: BatchRow, counts: BatchCounts): OpenBatch {
  return {
    row,
    ready: [],
    later: [],
    cursor: -1,
    isRead: false,
    inFlight: new Map(),
    tokens: createLineTokens(),
    counts,
    noted: '',
    waitingFor: null,
    notBefore: 0,
    refusedAt: 0,
    isClosed: false,
  };
}

/** Reads every line again: some are neither known nor ended. */
export function rewind(batch: OpenBatch): void {
  batch.ready = [];
  batch.later = [];
  batch.cursor = -1;
  batch.isRead = false;
}

/** Nothing is left to send or to wait for. */
export function isAtRest({ ready, later, isRead, inFlight }: OpenBatch): boolean {
  return isRead && ready.length === 0 && later.length === 0 && inFlight.size === 0;
}
