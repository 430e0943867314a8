import type { StreamEntry } from '../../shared/contracts/events.ts';

/** A reader of a request's events, as the hub tracks it. */
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
  /** The delivery that wrote the text the reader has. */
  writer: string | undefined;
  /** The stream may have events that were not delivered to the reader. */
  isBehind: boolean;
  /** Messages should have brought the missing events. */
  hasGap: boolean;
  quietSince: number;
  /** The request is on its way into Redis, which may not know it yet. */
  isAwaited: boolean;
}

/** A reader that has received nothing yet. */
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
  /** Zero retention: no part of the answer may be kept. */
  isWipedAtEnd: boolean;
  /** Since when Redis has not known the request, as often as it was asked. */
  unknownSince: number | undefined;
  /** Runs once all readers have been told that Redis no longer knows the request. */
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
