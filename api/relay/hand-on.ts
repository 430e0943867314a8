import { FAULT, LOST, firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import { isListening } from './open-reader.ts';
import type { OpenReader } from './open-reader.ts';

export interface HandOn {
  /** Hands an entry to a reader that takes entries now, without the events that the reader already has. */
  deliver(reader: OpenReader, entry: StreamEntry): void;
  /** Ends a reader whose request Redis has lost. */
  lose(reader: OpenReader): void;
  /** Ends a reader that this service cannot continue to serve. */
  breakOff(reader: OpenReader, lastSeq: number, error: unknown): void;
}

/**
 * Whether an entry belongs to another answer than the reader's: Redis came back without its last writes, and another
 * delivery ran the request again. An error with which a later delivery ends an interrupted answer still belongs to the
 * reader's.
 */
function isOfAnotherAnswer({ writer, nextSeq }: OpenReader, entry: StreamEntry): boolean {
  if (writer === undefined || entry.writer === undefined || entry.writer === writer) return false;
  const isInterruption = entry.terminal?.finishReason === 'error' && entry.deltas.length === 0;
  return !isInterruption || firstSeqOf(entry) !== nextSeq;
}

/** The entry without the increments already delivered: repeated text may be split into different entries. */
function unseenOf(entry: StreamEntry, nextSeq: number): StreamEntry {
  const seen = nextSeq - firstSeqOf(entry);
  return seen <= 0 ? entry : { ...entry, deltas: entry.deltas.slice(seen) };
}

/** How entries reach a reader: each event once and in order, and nothing after the end. */
export function createHandOn(deps: { onEnded: (reader: OpenReader) => void; now: () => number; log: Logger }): HandOn {
  const { onEnded, now, log } = deps;

  function deliver(reader: OpenReader, entry: StreamEntry): void {
    if (!isListening(reader) || reader.ended) return;
    if (isOfAnotherAnswer(reader, entry)) {
      log.warn('Redis has come back with another answer than the one that was begun; the client is told.', {
        requestId: reader.requestId,
      });
      lose(reader);
      return;
    }
    if (entry.lastSeq < reader.nextSeq) return;
    reader.writer ??= entry.writer;
    handOn(reader, unseenOf(entry, reader.nextSeq));
  }

  function lose(reader: OpenReader): void {
    if (isListening(reader)) handOn(reader, { lastSeq: reader.nextSeq, deltas: [], terminal: LOST });
  }

  /** An error thrown by a reader ends only its own stream, because one call serves many readers. */
  function handOn(reader: OpenReader, entry: StreamEntry): void {
    reader.nextSeq = entry.lastSeq + 1;
    reader.quietSince = now();
    reader.ended = entry.terminal !== undefined;
    try {
      reader.onEntry(entry);
    } catch (error) {
      breakOff(reader, firstSeqOf(entry), error);
    }
    if (reader.ended) onEnded(reader);
  }

  function breakOff(reader: OpenReader, lastSeq: number, error: unknown): void {
    const { requestId, onEntry } = reader;
    log.error('An answer cannot be handed on; the client is told.', { requestId, error });
    reader.ended = true;
    try {
      onEntry({ lastSeq, deltas: [], terminal: FAULT });
    } catch (cause) {
      log.error('A client could not be told that its answer has broken off.', { requestId, error: cause });
    }
  }

  return { deliver, lose, breakOff };
}
