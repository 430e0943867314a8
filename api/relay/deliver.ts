import { FAULT, LOST, firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';

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

function isListening({ paused, closed }: OpenReader): boolean {
  return !paused && !closed;
}

export function isOpen(reader: OpenReader): boolean {
  return !reader.ended && isListening(reader);
}

export type Deliver = ReturnType<typeof createDeliver>;

/**
 * Tells whether an entry belongs to another answer than the reader's: Redis came back without its last writes, and
 * another delivery ran the request again. An error by which a later delivery ends an interrupted answer still belongs
 * to the reader's.
 */
function isFromOtherWriter({ writer, nextSeq }: OpenReader, entry: StreamEntry): boolean {
  if (writer === undefined || entry.writer === undefined || entry.writer === writer) return false;
  const isInterruption = entry.terminal?.finishReason === 'error' && entry.deltas.length === 0;
  return !isInterruption || firstSeqOf(entry) !== nextSeq;
}

/** The entry without the increments already delivered: repeated text may be split into different entries. */
function unseenOf(entry: StreamEntry, nextSeq: number): StreamEntry {
  const seen = nextSeq - firstSeqOf(entry);
  return seen <= 0 ? entry : { ...entry, deltas: entry.deltas.slice(seen) };
}

/** Delivers entries to a reader: each event once and in order, and nothing after the end. */
export function createDeliver(deps: { onEnded: (reader: OpenReader) => void; now: () => number; log: Logger }) {
  const { onEnded, now, log } = deps;

  function deliver(reader: OpenReader, entry: StreamEntry): void {
    if (!isListening(reader) || reader.ended) return;
    if (isFromOtherWriter(reader, entry)) {
      log.warn('Redis has come back with another answer than the one that was begun; the client is told.', {
        requestId: reader.requestId,
      });
      failLost(reader);
      return;
    }
    if (entry.lastSeq < reader.nextSeq) return;
    reader.writer ??= entry.writer;
    pass(reader, unseenOf(entry, reader.nextSeq));
  }

  function failLost(reader: OpenReader): void {
    if (isListening(reader)) pass(reader, { lastSeq: reader.nextSeq, deltas: [], terminal: LOST });
  }

  /** An error thrown by a reader ends only its own stream, because one call serves many readers. */
  function pass(reader: OpenReader, entry: StreamEntry): void {
    reader.nextSeq = entry.lastSeq + 1;
    reader.quietSince = now();
    reader.ended = entry.terminal !== undefined;
    try {
      reader.onEntry(entry);
    } catch (error) {
      failReader(reader, firstSeqOf(entry), error);
    }
    if (reader.ended) onEnded(reader);
  }

  function failReader(reader: OpenReader, lastSeq: number, error: unknown): void {
    const { requestId, onEntry } = reader;
    log.error('An answer cannot be handed on; the client is told.', { requestId, error });
    reader.ended = true;
    try {
      onEntry({ lastSeq, deltas: [], terminal: FAULT });
    } catch (cause) {
      log.error('A client could not be told that its answer has broken off.', { requestId, error: cause });
    }
  }

  return {
    /** Hands an entry to a reader that takes entries now, without the events that the reader already has. */
    deliver,
    failLost,
    failReader,
  };
}

/** All readers passed to a call are of one request. */
export type CatchUp = ReturnType<typeof createCatchUp>;

/** Entries per read. A slow client may take only a few of them; the rest is read again. */
const PORTION = 64;

interface ReadStart {
  reader: OpenReader;
  fromSeq: number;
  hasGap: boolean;
}

/** Tells whether a read up to `lastSeq` found events that messages should have brought, but still have not. */
function isFound({ reader, fromSeq, hasGap }: ReadStart, lastSeq: number): boolean {
  return hasGap && isOpen(reader) && reader.nextSeq === fromSeq && lastSeq >= fromSeq;
}

interface CatchUpDeps {
  groups: ReadonlyMap<string, ReaderGroup>;
  streams: StreamReader;
  delivering: Deliver;
  /** A read has found text that no message brought. */
  onGap: () => void;
  now: () => number;
  log: Logger;
}

/** Reads what readers of a request have not seen: one read at a time, for all of them. False: it has not read all. */
function createFill({ streams, delivering, onGap, now, log }: CatchUpDeps) {
  const { deliver, failReader } = delivering;

  async function readFor({ shard, requestId }: ReaderGroup, behind: readonly OpenReader[]): Promise<void> {
    const starts = behind.map((reader) => ({ reader, fromSeq: reader.nextSeq, hasGap: reader.hasGap }));
    for (const reader of behind) Object.assign(reader, { isBehind: false, hasGap: false, quietSince: now() });
    const least = Math.min(...starts.map(({ fromSeq }) => fromSeq));
    const entries = await streams.readFrom(shard, requestId, least, PORTION);
    const lastSeq = entries.at(-1)?.lastSeq ?? 0;
    if (starts.some((start) => isFound(start, lastSeq))) onGap();
    for (const entry of entries) {
      for (const { reader, fromSeq } of starts) if (entry.lastSeq >= fromSeq) deliver(reader, entry);
    }
    if (entries.length === PORTION) for (const reader of behind) reader.isBehind = true;
  }

  return async function fill(group: ReaderGroup): Promise<boolean> {
    if (group.isFilling) return false;
    group.isFilling = true;
    const behindOf = () => [...group.readers].filter((reader) => reader.isBehind && isOpen(reader));
    try {
      for (let behind = behindOf(); behind.length > 0; behind = behindOf()) await readFor(group, behind);
      return true;
    } catch (error) {
      // Malformed entries stay malformed; after any other error the next poll tries again.
      if (!(error instanceof SyntaxError))
        log.debug('A stream could not be read.', { requestId: group.requestId, error });
      else for (const reader of [...group.readers].filter(isOpen)) failReader(reader, reader.nextSeq, error);
      return false;
    } finally {
      group.isFilling = false;
    }
  };
}

/** Reads from a request's stream what messages have not brought to its readers. */
export function createCatchUp(deps: CatchUpDeps) {
  const { groups, now } = deps;
  const fill = createFill(deps);

  function catchUp(...behind: readonly OpenReader[]): void {
    for (const reader of behind) reader.isBehind = true;
    const group = groups.get(behind[0]?.requestId ?? '');
    if (group !== undefined) void fill(group);
  }

  function recover(...missing: readonly OpenReader[]): void {
    for (const reader of missing) reader.hasGap = true;
    catchUp(...missing);
  }

  function recoverQuiet(quietForMs: number): void {
    const limit = now() - quietForMs;
    for (const { readers } of groups.values()) {
      // A read serves all readers, so all of them are recovered and become quiet together.
      const isQuiet = (reader: OpenReader) => isOpen(reader) && reader.quietSince <= limit;
      if ([...readers].some(isQuiet)) recover(...readers);
    }
  }

  async function readRest(group: ReaderGroup): Promise<boolean> {
    for (const reader of group.readers) reader.isBehind = true;
    return fill(group);
  }

  return {
    catchUp,
    /** Like `catchUp`, for events that messages should have brought. */
    recover,
    /** Recovers all readers without an entry for this time. */
    recoverQuiet,
    /** Reads the rest of the stream. False: another read is under way, or Redis does not answer. */
    readRest,
  };
}
