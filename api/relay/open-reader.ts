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
  /** The delivery whose text the reader has. */
  writer: string | undefined;
  /** The stream may have events that were not delivered. */
  isBehind: boolean;
  /** Messages should have brought what it lacks. */
  hasGap: boolean;
  quietSince: number;
  /** The request is on its way into Redis, which does not know it yet. */
  isAwaited: boolean;
}

/** A reader that has nothing yet. */
export function newReader(
  shard: number,
  requestId: string,
  onEntry: OpenReader['onEntry'],
  { fromSeq, isAwaited, quietSince }: { fromSeq: number; isAwaited: boolean; quietSince: number },
): OpenReader {
  return {
    shard,
    requestId,
    nextSeq: fromSeq,
    onEntry,
    paused: false,
    closed: false,
    ended: false,
    writer: undefined,
    isBehind: false,
    hasGap: false,
    quietSince,
    isAwaited,
  };
}

/** The readers of one request. A read of the stream serves all of them. */
export interface ReaderGroup {
  shard: number;
  requestId: string;
  readers: Set<OpenReader>;
  isFilling: boolean;
  /** Nothing is kept of the answer. */
  isWipedAtEnd: boolean;
  /** Redis was asked for the request and did not know it, and has not since then. */
  unknownSince: number | undefined;
  /** What is to be done once all readers were told that Redis knows nothing of the request. */
  onLost: (() => void) | undefined;
}

export function newGroup(shard: number, requestId: string): ReaderGroup {
  return {
    shard,
    requestId,
    readers: new Set(),
    isFilling: false,
    isWipedAtEnd: false,
    unknownSince: undefined,
    onLost: undefined,
  };
}

/** Whether the reader takes events now. */
export function isListening({ paused, closed }: OpenReader): boolean {
  return !paused && !closed;
}

/** Whether more events can be delivered now. */
export function isOpen(reader: OpenReader): boolean {
  return !reader.ended && isListening(reader);
}
