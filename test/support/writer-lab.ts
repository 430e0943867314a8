import { jest } from '@jest/globals';

import type { WriteOutcome } from '../../shared/requests/delivery.ts';
import { createChunkWriters } from '../../workers/pipeline/chunk-writer.ts';
import { openDelivery } from '../../shared/requests/delivery-store.ts';
import { idleLease, idleRun } from './idle-run.ts';

interface Append {
  lastSeq: number;
  deltas: string[];
}

/** A writer over a store whose answers the test gives itself. Needs faked timers. */
export function openWriter(sentSeq = 0, { others = 0 } = {}) {
  const appends: Append[] = [];
  const stops: string[] = [];
  let answering: PromiseWithResolvers<WriteOutcome> | undefined;
  let immediate = true;
  const writes = {
    append(_ref: unknown, lastSeq: number, deltas: readonly string[]) {
      appends.push({ lastSeq, deltas: [...deltas] });
      if (immediate) return Promise.resolve('ok' as const);
      answering = Promise.withResolvers();
      return answering.promise;
    },
    renew: () => Promise.reject(new Error('A writer renews nothing')),
    finish: () => Promise.reject(new Error('A writer ends nothing')),
  };
  const ref = {
    shard: 0,
    requestId: 'req_1',
    tenantId: 'ten_1',
    keyId: 'key_1',
    queue: 'interactive',
    fence: 1,
  } as const;
  const lease = idleLease({ stop: (reason) => stops.push(reason) });
  const openOne = createChunkWriters();
  const runOf = () => idleRun({ lease, delivery: openDelivery(writes, ref, sentSeq) });
  const silent = Array.from({ length: others }, () => openOne(runOf()));
  const run = runOf();
  const { answer } = run;
  const writer = openOne(run);
  return {
    writer,
    answer,
    appends,
    stops,
    /** The other streams of the worker, which send nothing. */
    silent,
    /** From here on an append is under way until `reply`. */
    hold: () => (immediate = false),
    async reply(outcome: WriteOutcome | Error) {
      if (outcome instanceof Error) answering?.reject(outcome);
      else answering?.resolve(outcome);
      await jest.advanceTimersByTimeAsync(0);
    },
  };
}

/** Lets the turn of the event loop end. */
export const turn = () => jest.advanceTimersByTimeAsync(0);

export const texts = (appends: readonly Append[]) => appends.map(({ deltas }) => deltas.join(''));
