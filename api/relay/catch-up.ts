import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { StreamReader } from '../../shared/infra/redis/requests/stream-reader.ts';
import type { HandOn } from './hand-on.ts';
import { isOpen } from './open-reader.ts';
import type { OpenReader, ReaderGroup } from './open-reader.ts';

/** All readers passed to a call are of one request. */
export interface CatchUp {
  /** Reads the events that the readers have not seen. */
  catchUp(...behind: readonly OpenReader[]): void;
  /** Like `catchUp`, for events that messages should have brought. */
  recover(...missing: readonly OpenReader[]): void;
  /** Recovers all readers without an entry for this time. */
  recoverQuiet(quietForMs: number): void;
  /** Reads the rest of the stream. False: another read is under way, or Redis does not answer. */
  readRest(group: ReaderGroup): Promise<boolean>;
}

/** Entries per read. A slow client may take only a few of them; the rest is read again. */
const PORTION = 64;

/** Where a reader stood when a read began. */
interface ReadStart {
  reader: OpenReader;
  fromSeq: number;
  hasGap: boolean;
}

/** Whether a read up to `lastSeq` found events that messages should have brought, but still have not. */
function isFound({ reader, fromSeq, hasGap }: ReadStart, lastSeq: number): boolean {
  return hasGap && isOpen(reader) && reader.nextSeq === fromSeq && lastSeq >= fromSeq;
}

/** Reads from a request's stream what messages have not brought to its readers. */
export function createCatchUp(deps: {
  groups: ReadonlyMap<string, ReaderGroup>;
  streams: StreamReader;
  handOn: HandOn;
  /** A read has found text that no message brought. */
  onGap: () => void;
  now: () => number;
  log: Logger;
}): CatchUp {
  const { groups, streams, handOn, onGap, now, log } = deps;
  const { deliver, breakOff } = handOn;

  /** Reads what readers of a request have not seen: one read at a time, for all of them. False: it has not read all. */
  async function fill(group: ReaderGroup): Promise<boolean> {
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
      else for (const reader of [...group.readers].filter(isOpen)) breakOff(reader, reader.nextSeq, error);
      return false;
    } finally {
      group.isFilling = false;
    }
  }

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

  return { catchUp, recover, recoverQuiet, readRest };
}
