import { firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';

/** A reader of a request's events, as the hub keeps it. */
export interface OpenReader {
  shard: number;
  requestId: string;
  /** Sequence number of the next event to hand on. */
  nextSeq: number;
  onEntry: (entry: StreamEntry) => void;
  paused: boolean;
  closed: boolean;
  /** The terminal event has come. */
  ended: boolean;
  /** The attempt whose text was handed on. */
  writer: string | undefined;
  /** The stream may have events that it has not seen. */
  isBehind: boolean;
  /** They were to come by messages. */
  isMissing: boolean;
  quietSince: number;
  /** The request is on its way into Redis, which does not know it yet. */
  isAwaited: boolean;
}

/**
 * Whether an entry belongs to another answer than the one that was begun: Redis has come back without its last writes,
 * and another attempt has run the request. The end that a later attempt gives an interrupted answer is no other answer.
 */
export function isAnothers({ writer, nextSeq }: OpenReader, entry: StreamEntry): boolean {
  if (writer === undefined || entry.writer === undefined || entry.writer === writer) return false;
  const isInterruption = entry.terminal?.finishReason === 'error' && entry.deltas.length === 0;
  return !isInterruption || firstSeqOf(entry) !== nextSeq;
}

/** An entry without the increments that were handed on: what is sent again may be cut elsewhere. */
export function unseenOf(entry: StreamEntry, nextSeq: number): StreamEntry {
  const seen = nextSeq - firstSeqOf(entry);
  return seen <= 0 ? entry : { ...entry, deltas: entry.deltas.slice(seen) };
}

/** Takes events at the moment. */
export function isListening({ paused, closed }: OpenReader): boolean {
  return !paused && !closed;
}

/** More can be handed on. */
export function isOpen(reader: OpenReader): boolean {
  return !reader.ended && isListening(reader);
}

/** Where a reader stood when a read began. */
interface ReadStart {
  reader: OpenReader;
  fromSeq: number;
  isMissing: boolean;
}

/** A read up to `lastSeq` has found what the reader was to hear by messages, and none has brought it meanwhile. */
export function isFound({ reader, fromSeq, isMissing }: ReadStart, lastSeq: number): boolean {
  return isMissing && isOpen(reader) && reader.nextSeq === fromSeq && lastSeq >= fromSeq;
}
