import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { BatchRow } from '../../shared/mongo/batches/batch-repository.ts';
import type { BatchCounts, WaitingLine } from '../../shared/mongo/batches/batch-work-repository.ts';
import { createLineTokens } from './line-state.ts';
import type { LineTokens } from './line-state.ts';

/** A line that has yet to be sent, and what the leader knows of it beside its row, which is read when it is sent. */
export interface OpenLine extends Pick<WaitingLine, 'index' | 'retry'> {
  /** It is sent although its tier is down, to find out whether the tier answers again. */
  isProbe?: boolean;
  /** Length of its request as JSON, in characters; absent until the request has been read once. */
  length?: number;
}

/** A line whose request runs or waits in the queue. */
export interface SentLine extends WaitingLine {
  /** The estimate made when it was sent; absent where an earlier leader sent it. */
  promptTokens?: number;
  /** Its end has been reported to the provider watch, which must not count it twice. */
  isNoted?: boolean;
}

/**
 * What the leader knows of a batch that has not ended. All of it is in memory only, and the next leader reads it again.
 *
 * A line without a result is in one of four places. `ready`: it can be sent now. `later`: it waits for the time of its next
 * try. `held`: it waits for its tier to answer again. `inFlight`: its request waits in the queue or runs. Lines behind
 * `cursor` have not been read yet.
 */
export interface OpenBatch {
  row: BatchRow;
  /** In the order of their numbers. */
  ready: OpenLine[];
  later: OpenLine[];
  /**
   * Numbers of lines by their tier, which has at least one. Nothing else is kept of them: an outage of hours may hold all
   * 10,000 lines of every batch, and each has to be read to learn its tier, as lines of another tier may stand behind it.
   */
  held: Map<Tier, number[]>;
  /** Number of the last line that was read; -1: none. */
  cursor: number;
  /** Every line has been read. */
  isRead: boolean;
  /** By the line's number. */
  inFlight: Map<number, SentLine>;
  /** Learns from ended lines how many tokens the next ones take. */
  tokens: LineTokens;
  counts: BatchCounts;
  /** The state that was last written to the batch's row, as JSON, so that it is written on changes only. */
  noted: string;
  /** Why the last refused line has to wait; null: none has been refused since lines were last sent. */
  waitingFor: BatchWait | null;
  /** No line is sent before this time (`performance.now`). */
  notBefore: number;
  /** When admission last refused a line (`performance.now`); 0 once this or another batch of the tenant has sent one. */
  refusedAt: number;
  /** The batch is cancelled or expired, and its waiting lines have been ended. */
  isClosed: boolean;
}

export function openBatch(row: BatchRow, counts: BatchCounts): OpenBatch {
  return {
    row,
    ready: [],
    later: [],
    held: new Map(),
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

/** Makes the leader read all lines again, where what it knows may be incomplete or wrong. Lines in flight stay known. */
export function rewind(batch: OpenBatch): void {
  batch.ready = [];
  batch.later = [];
  batch.held = new Map();
  batch.cursor = -1;
  batch.isRead = false;
}

/** Whether it has lines that are known and not sent. */
export function hasUnsent({ ready, later, held }: OpenBatch): boolean {
  return ready.length > 0 || later.length > 0 || held.size > 0;
}

/** Whether no line is left to read, to send or to wait for. */
export function isAtRest(batch: OpenBatch): boolean {
  return batch.isRead && !hasUnsent(batch) && batch.inFlight.size === 0;
}
