import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { ChunkChannel } from '../../shared/infra/redis/requests/request-channels.ts';
import type { RecordStore } from '../../shared/infra/redis/requests/record-store.ts';
import type { CatchUp } from './catch-up.ts';
import type { HandOn } from './hand-on.ts';
import { isOpen } from './open-reader.ts';
import type { ReaderGroup } from './open-reader.ts';

export interface RenewReadersDeps {
  groups: ReadonlyMap<string, ReaderGroup>;
  channel: Pick<ChunkChannel, 'nameOf'>;
  records: Pick<RecordStore, 'renewReader'>;
  readRest: CatchUp['readRest'];
  lose: HandOn['lose'];
  log: Logger;
}

const ignore = () => undefined;

/**
 * After Redis has come back without a request, the request's worker restores it as soon as the worker is connected; an
 * attempt to connect that hangs takes five seconds (shared/infra/redis/connection.ts).
 */
const UNKNOWN_MS = 6_000;

/** Renews the leases of all readers, and finds readers that wait for a request which Redis does not have. */
export function createRenewReaders({ groups, channel, records, readRest, lose, log }: RenewReadersDeps): () => void {
  /** Whether a worker may still restore a request that Redis does not know. If so, Redis is asked again later. */
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
    for (const reader of lost) lose(reader);
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
