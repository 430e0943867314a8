/**
 * The door of the relay: brings the answers of running requests from Redis to the connections of this ingress, each
 * event once and in order, byte for byte the same on every ingress (docs/decisions/0006-answer-streams.md).
 *
 * - A worker appends an entry to the request's stream and publishes the same payload to every ingress that reads, in one
 *   script. The payload has a line for each event: text is a JSON string literal, the end a JSON object.
 * - Events are numbered from 1 without gaps: each increment, the last chunk, and `[DONE]`, which an error does not have.
 *   An entry's id is the number of its last event. An event's bytes follow from the record and its number.
 * - This ingress subscribes once per shard, and hands on at once what comes in order. After a gap, after every reconnect,
 *   and once a second while a stream is silent, it reads the stream (deliver.ts), because pub/sub alone lost 460 of
 *   3,000 messages in one reconnect. Reading is safe to repeat: it changes nothing but leases.
 * - A reader has a lease of 15 s in the record, renewed every 5 s. When the last one is gone for the grace, the worker
 *   stops, unless the request is to finish without readers. For 20 s after the worker's reconnect no reader counts as
 *   missing, because readers could not renew either.
 * - A client that does not read stops its reader until `drain`, and is dropped after 30 s (paced-writer.ts).
 */
import { decodeMessage, firstSeqOf } from '../../shared/contracts/events.ts';
import type { StreamEntry } from '../../shared/contracts/events.ts';
import type { Emitter } from '../../shared/lifecycle/event-bus.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { ProcessParts } from '../../shared/process-parts.ts';
import type { StreamReader } from '../../shared/requests/answers.ts';
import { createChunkChannel } from '../../shared/requests/channels.ts';
import type { ChunkChannel } from '../../shared/requests/channels.ts';
import type { RecordStore } from '../../shared/requests/record-store.ts';
import { createCatchUp, createDeliver, isOpen, newGroup, newReader } from './deliver.ts';
import type { CatchUp, Deliver, OpenReader, ReaderGroup } from './deliver.ts';

interface RenewReadersDeps {
  groups: ReadonlyMap<string, ReaderGroup>;
  channel: ChunkChannel;
  records: Pick<RecordStore, 'renewReader'>;
  readRest: CatchUp['readRest'];
  failLost: Deliver['failLost'];
  log: Logger;
}

const ignore = () => undefined;

/**
 * After Redis has come back without a request, the request's worker restores it as soon as the worker is connected; an
 * attempt to connect that hangs takes five seconds (shared/redis/connection.ts).
 */
const UNKNOWN_MS = 6_000;

/** Renews the leases of all readers, and finds readers that wait for a request which Redis does not have. */
function createRenewReaders({ groups, channel, records, readRest, failLost, log }: RenewReadersDeps): () => void {
  /** True while a worker may still restore a request that Redis does not know; Redis is then asked again later. */
  function mayComeBack(group: ReaderGroup): boolean {
    if (group.unknownSince !== undefined) return performance.now() - group.unknownSince < UNKNOWN_MS;
    group.unknownSince = performance.now();
    setTimeout(() => void renew(group).catch(ignore), UNKNOWN_MS).unref();
    return true;
  }

  /** A reader that has read everything and still waits for more would wait in vain. */
  async function renew(group: ReaderGroup): Promise<void> {
    const { shard, requestId, readers } = group;
    const waitingOf = () => [...readers].filter(({ ended, isAwaited }) => !ended && !isAwaited);
    if (waitingOf().length === 0) return;
    const state = await records.renewReader(shard, requestId, channel.nameOf(shard));
    // An answer may be read for longer than its record is kept.
    if (state !== 'unknown') group.unknownSince = undefined;
    if (state === 'open' || !(await readRest(group))) return;
    if (state === 'unknown' && mayComeBack(group)) return;
    const lost = waitingOf().filter(isOpen);
    if (lost.length === 0) return;
    log.warn('Redis has no end of a request that a client waits for; the client is told.', { requestId });
    for (const reader of lost) failLost(reader);
    if (state === 'unknown' && [...readers].every(({ ended }) => ended)) {
      group.onLost?.();
      group.onLost = undefined;
    }
  }

  return () => {
    // A lease that is not renewed ends, and the disconnect grace follows, so failures need no handling.
    for (const group of groups.values()) renew(group).catch(ignore);
  };
}

export interface RelayEvents {
  /** A read of the stream has found text that no message brought. */
  'relay.gap_filled': [];
}

export interface RelayHub {
  /** The channel on which workers publish the entries of requests admitted here. */
  channelOf(shard: number): string;
  /** False: wait for `ensureShard` before a request of this shard is admitted. */
  hasShard(shard: number): boolean;
  ensureShard(shard: number): Promise<void>;
  /** Calls `onEntry` entry by entry, with each event once and in order, until `close`. */
  open(shard: number, requestId: string, onEntry: (entry: StreamEntry) => void, from?: ReadFrom): Reader;
  /** Deletes Redis's copy of an answer once every reader here has reached its end. Call it while a reader is open. */
  deleteWhenRead(requestId: string): void;
  /** Calls back once all readers here know that Redis has lost their request. Call it while a reader is open. */
  onLost(requestId: string, act: () => void): void;
  /** The number of requests with open readers. */
  size(): number;
  close(): void;
}

/** By default a reader begins at the first event of a stream that does not exist yet. */
export interface ReadFrom {
  fromSeq?: number;
  /** The stream may have begun, so it is read at once. */
  existing?: boolean | undefined;
  /** The request may not be admitted yet: until `confirm`, Redis is not asked whether it knows the request. */
  isAwaited?: boolean;
}

export interface Reader {
  close(): void;
  /** The request was admitted. */
  confirm(): void;
  /** Closes without notifying Redis: the request was not admitted. */
  abandon(): void;
  /** Stops calling back until `resume`. Entries that come meanwhile stay in Redis. */
  pause(): void;
  resume(): void;
}

/** A reader without an entry for this long reads the stream. */
const POLL_MS = 1_000;
/** A third of a reader's lease, see READER_LEASE_MS in shared/requests/record-store.ts. */
const RENEW_READERS_MS = 5_000;

type ReaderGroups = Map<string, ReaderGroup>;

export interface RelayHubDeps {
  channel: ChunkChannel;
  streams: StreamReader;
  records: Pick<RecordStore, 'renewReader' | 'detach' | 'wipe'>;
  log: Logger;
  now: () => number;
  events: Emitter<RelayEvents>;
}

/** Deletes Redis's copy of an answer, if nothing of it is to be kept, once its readers here have read it. */
function createWipeIfRead(groups: ReaderGroups, { records, channel }: RelayHubDeps) {
  return ({ shard, requestId }: OpenReader): void => {
    const group = groups.get(requestId);
    // An answer that is not wiped, because Redis is unavailable or another ingress reads it, expires soon.
    if (group?.isWipedAtEnd === true && [...group.readers].every(({ ended }) => ended))
      records.wipe(shard, requestId, channel.nameOf(shard)).catch(ignore);
  };
}

/** Receives messages and delivers their entries; if an earlier entry is missing, recovers first. */
function createReceive(deps: {
  groups: ReaderGroups;
  deliver: Deliver['deliver'];
  recover: CatchUp['recover'];
  log: Logger;
}) {
  const { groups, deliver, recover, log } = deps;
  return (requestId: string, head: string, payload: string): void => {
    const group = groups.get(requestId);
    if (group === undefined) return;
    let entry: StreamEntry;
    try {
      entry = decodeMessage(head, payload);
    } catch (error) {
      log.error('A message cannot be read; its stream is read instead.', { requestId, error });
      recover(...group.readers);
      return;
    }
    // A reader may close itself here and leave the set.
    for (const reader of group.readers) {
      if (firstSeqOf(entry) > reader.nextSeq) recover(reader);
      else deliver(reader, entry);
    }
  };
}

function createMembership(
  groups: ReaderGroups,
  { records, channel }: RelayHubDeps,
  wipeIfRead: (reader: OpenReader) => void,
) {
  function add(reader: OpenReader): void {
    const { shard, requestId } = reader;
    const group = groups.get(requestId) ?? newGroup(shard, requestId);
    group.readers.add(reader);
    groups.set(requestId, group);
  }

  /** Returns whether it was the last reader of the request here. */
  function remove(reader: OpenReader): boolean {
    if (reader.closed) return false;
    reader.closed = true;
    const group = groups.get(reader.requestId);
    group?.readers.delete(reader);
    wipeIfRead(reader);
    // A closed reader gets nothing more, but a table that the map has outgrown keeps it: see `onAbort` in answer.ts.
    reader.onEntry = ignore;
    if (group?.readers.size !== 0) return false;
    group.onLost = undefined;
    return groups.delete(reader.requestId);
  }

  function close(reader: OpenReader): void {
    if (remove(reader) && !reader.ended)
      records.detach(reader.shard, reader.requestId, channel.nameOf(reader.shard)).catch(ignore);
  }

  return { add, remove, close };
}

export function createRelayHub(deps: RelayHubDeps): RelayHub {
  const { channel, streams, records, log, now, events } = deps;
  const groups: ReaderGroups = new Map();
  const wipeIfRead = createWipeIfRead(groups, deps);
  const { add, remove, close } = createMembership(groups, deps, wipeIfRead);
  const delivering = createDeliver({ onEnded: wipeIfRead, now, log });
  const { deliver, failLost } = delivering;
  const onGap = () => {
    events.emit('relay.gap_filled');
  };
  const { catchUp, recover, recoverQuiet, readRest } = createCatchUp({ groups, streams, delivering, onGap, now, log });
  const renewAll = createRenewReaders({ groups, channel, records, readRest, failLost, log });

  channel.onEntry(createReceive({ groups, deliver, recover, log }));
  channel.onReady(() => {
    // Workers reconnect at the same time, so Redis may be missing requests that they are about to put back.
    for (const group of groups.values()) group.unknownSince = undefined;
    recoverQuiet(0);
    renewAll();
  });
  const poll = setInterval(() => {
    recoverQuiet(POLL_MS);
  }, POLL_MS / 2);
  poll.unref();
  const renewal = setInterval(renewAll, RENEW_READERS_MS);
  renewal.unref();

  return {
    channelOf: (shard) => channel.nameOf(shard),
    hasShard: (shard) => channel.isSubscribed(shard),
    ensureShard: (shard) => channel.subscribe(shard),
    deleteWhenRead(requestId) {
      const group = groups.get(requestId);
      if (group !== undefined) group.isWipedAtEnd = true;
    },
    onLost(requestId, act) {
      const group = groups.get(requestId);
      if (group !== undefined) group.onLost = act;
    },
    size: () => groups.size,
    close() {
      clearInterval(poll);
      clearInterval(renewal);
    },
    open(shard, requestId, onEntry, { fromSeq = 1, existing = false, isAwaited = false } = {}) {
      const reader = newReader(shard, requestId, onEntry, { fromSeq, isAwaited, quietSince: now() });
      add(reader);
      if (existing) catchUp(reader);
      return {
        close: () => {
          close(reader);
        },
        confirm: () => {
          reader.isAwaited = false;
        },
        abandon: () => {
          remove(reader);
        },
        pause: () => {
          reader.paused = true;
        },
        resume: () => {
          reader.paused = false;
          catchUp(reader);
        },
      };
    },
  };
}

export function openRelay(parts: ProcessParts & Omit<RelayHubDeps, 'channel' | 'now'>): RelayHub {
  const { subscriber, keyspace, clock, closer } = parts;
  const channel = createChunkChannel(subscriber, keyspace, newId('ing'));
  const hub = createRelayHub({ ...parts, channel, now: clock.now });
  closer.defer('relay', () => {
    hub.close();
  });
  return hub;
}
