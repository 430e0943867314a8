import { firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';

/** A reader of a request's events, as the hub keeps it. */
export interface OpenReader {
  shard: number;
  requestId: string;
  /** Sequence number of the next event to deliver. */
  nextSeq: number;
  onEntry: (entry: StreamEntry) => void;
  paused: boolean;
  closed: boolean;
  /** The terminal event has come. */
  ended: boolean;
  /** The attempt whose text was delivered. */
  writer: string | undefined;
  /** The stream may have events that were not delivered. */
  isBehind: boolean;
  /** Messages should have brought them. */
  isMissing: boolean;
  quietSince: number;
  /** The request is on its way into Redis, which does not know it yet. */
  isAwaited: boolean;
}

/**
 * Whether an entry belongs to another answer than the one that was begun: Redis came back without its last writes, and
 * another attempt ran the request anew. The error with which a later attempt ends an interrupted answer belongs to it.
 */
export function isAnothers({ writer, nextSeq }: OpenReader, entry: StreamEntry): boolean {
  if (writer === undefined || entry.writer === undefined || entry.writer === writer) return false;
  const isInterruption = entry.terminal?.finishReason === 'error' && entry.deltas.length === 0;
  return !isInterruption || firstSeqOf(entry) !== nextSeq;
}

/** The entry without increments that were delivered: repeated text may be split into other entries. */
export function unseenOf(entry: StreamEntry, nextSeq: number): StreamEntry {
  const seen = nextSeq - firstSeqOf(entry);
  return seen <= 0 ? entry : { ...entry, deltas: entry.deltas.slice(seen) };
}

/** Whether the reader takes events now. */
export function isListening({ paused, closed }: OpenReader): boolean {
  return !paused && !closed;
}

/** Whether more events can be delivered now. */
export function isOpen(reader: OpenReader): boolean {
  return !reader.ended && isListening(reader);
}

/** Where a reader stood when a read began. */
interface ReadStart {
  reader: OpenReader;
  fromSeq: number;
  isMissing: boolean;
}

/** Whether a read up to `lastSeq` found events that messages should have brought, and have not brought meanwhile. */
export function isFound({ reader, fromSeq, isMissing }: ReadStart, lastSeq: number): boolean {
  return isMissing && isOpen(reader) && reader.nextSeq === fromSeq && lastSeq >= fromSeq;
}
