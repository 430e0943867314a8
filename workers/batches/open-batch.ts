import type { BatchWait } from '../../shared/contracts/batches.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { BatchRow } from '../../shared/mongo/batches/batch-repository.ts';
import type { BatchCounts, WaitingLine } from '../../shared/mongo/batches/batch-work-repository.ts';
import { createLineTokens, isDue } from './line-state.ts';
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
}

/**
 * Lines of a batch without a result. `waiting`: to be sent, at once or at the next try. `held`: until the tier answers
 * again. `inFlight`: the request waits in the queue or runs. Lines behind `cursor` have not been read. Times are of
 * `performance.now`.
 */
interface BatchLines {
  /** In the order of their numbers. */
  readonly waiting: readonly OpenLine[];
  /**
   * Keeps lines' numbers alone: an outage of hours may hold all 10,000 lines of every batch, and each has to be read to
   * learn its tier, as lines of another tier may stand behind it. A tier here has at least one line.
   */
  readonly held: ReadonlyMap<Tier, readonly number[]>;
  /** By the line's number. */
  readonly inFlight: ReadonlyMap<number, SentLine>;
  /** Number of the last line that was read; -1: none. */
  readonly cursor: number;
  readonly isRead: boolean;
  /** The last refused line waits for this; null: none has been refused since lines were last taken. */
  readonly waitingFor: BatchWait | null;
  readonly notBefore: number;
  /** The latest refusal by admission; 0 once this or another batch of the tenant has sent a line. */
  readonly refusedAt: number;
}

export type LineEvent =
  | { kind: 'page'; cursor: number; isRead: boolean }
  | { kind: 'waits'; lines: readonly OpenLine[] }
  /** Lines of a tier wait no longer: the tier is up, or one of them is to find out whether it is. */
  | { kind: 'woken'; tier: Tier; count: number; isProbe: boolean }
  /** They are about to be sent. */
  | { kind: 'taken'; lines: readonly OpenLine[] }
  | { kind: 'sent'; lines: readonly SentLine[] }
  | { kind: 'held'; index: number; tier: Tier }
  | { kind: 'refused'; waitFor: BatchWait | null; now: number; ms: number }
  /** The tenant was moved, and its new leader sends the lines. */
  | { kind: 'moved'; until: number }
  /** Lines have ended, so that those that wait for their tokens may go soon. */
  | { kind: 'freed'; soon: number }
  | { kind: 'served' }
  /** Lines in flight have results, or are read again. */
  | { kind: 'gone'; indexes: readonly number[] }
  | { kind: 'ended' }
  /** All lines are to be read again, where what is known may be incomplete or wrong. Lines in flight stay known. */
  | { kind: 'rewound' };

const NO_LINES: BatchLines = {
  waiting: [],
  held: new Map(),
  inFlight: new Map(),
  cursor: -1,
  isRead: false,
  waitingFor: null,
  notBefore: 0,
  refusedAt: 0,
};

const byNumber = (lines: readonly OpenLine[]) => lines.toSorted((one, other) => one.index - other.index);

function withHeld(held: BatchLines['held'], tier: Tier, indexes: readonly number[]): BatchLines['held'] {
  const others = [...held].filter(([name]) => name !== tier);
  return new Map(indexes.length === 0 ? others : [...others, [tier, indexes]]);
}

function next(lines: BatchLines, event: LineEvent): BatchLines {
  const { waiting, held, inFlight } = lines;
  switch (event.kind) {
    case 'page':
      return { ...lines, cursor: event.cursor, isRead: event.isRead };
    case 'waits':
      return { ...lines, waiting: byNumber([...waiting, ...event.lines]) };
    case 'woken': {
      const { tier, count, isProbe } = event;
      const all = held.get(tier) ?? [];
      const woken = all.slice(0, count).map((index) => (isProbe ? { index, isProbe } : { index }));
      return { ...lines, waiting: byNumber([...waiting, ...woken]), held: withHeld(held, tier, all.slice(count)) };
    }
    case 'taken':
      return {
        ...lines,
        waiting: waiting.filter((line) => !event.lines.includes(line)),
        waitingFor: null,
        refusedAt: 0,
      };
    case 'sent':
      return { ...lines, inFlight: new Map([...inFlight, ...event.lines.map((line) => [line.index, line] as const)]) };
    case 'held':
      return { ...lines, held: withHeld(held, event.tier, [...(held.get(event.tier) ?? []), event.index]) };
    case 'refused': {
      const { waitFor: waitingFor, now, ms } = event;
      return { ...lines, waitingFor, refusedAt: now, notBefore: Math.max(lines.notBefore, now + ms) };
    }
    case 'moved':
      return { ...lines, notBefore: event.until };
    case 'freed':
      return lines.waitingFor === 'tpm' ? { ...lines, notBefore: Math.min(lines.notBefore, event.soon) } : lines;
    case 'served':
      return { ...lines, refusedAt: 0 };
    case 'gone': {
      const gone = new Set(event.indexes);
      return { ...lines, inFlight: new Map([...inFlight].filter(([index]) => !gone.has(index))) };
    }
    case 'ended':
      return { ...lines, waiting: [] };
    case 'rewound':
      return { ...lines, waiting: [], held: new Map(), cursor: -1, isRead: false };
  }
}

/** The leader's knowledge of a batch that has not ended. All of it is in memory only, and the next leader reads it again. */
export interface OpenBatch {
  row: BatchRow;
  /** Changed by `advance` alone. */
  lines: BatchLines;
  tokens: LineTokens;
  counts: BatchCounts;
  /** JSON of the state that was last written to the batch's row, so that it is written on changes only. */
  noted: string;
  /** The batch is cancelled or expired, and its waiting lines have been ended. */
  isClosed: boolean;
}

export function openBatch(row: BatchRow, counts: BatchCounts): OpenBatch {
  return { row, lines: NO_LINES, tokens: createLineTokens(), counts, noted: '', isClosed: false };
}

export function advance(batch: OpenBatch, event: LineEvent): void {
  batch.lines = next(batch.lines, event);
}

export function readyLines({ lines }: OpenBatch, now: number): OpenLine[] {
  return lines.waiting.filter(({ retry }) => retry === undefined || isDue(retry, now));
}

export function hasUnsent({ lines: { waiting, held } }: OpenBatch): boolean {
  return waiting.length > 0 || held.size > 0;
}

export function isAtRest(batch: OpenBatch): boolean {
  return batch.lines.isRead && !hasUnsent(batch) && batch.lines.inFlight.size === 0;
}
