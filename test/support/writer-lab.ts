import { jest } from '@jest/globals';

import type { WriteOutcome } from '../../shared/requests/delivery.ts';
import { createChunkWriters } from '../../workers/pipeline/chunk-writer.ts';
import { FIRST_DELIVERY, idleLease } from './idle-lease.ts';

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
  const answer = {
    sentSeq,
    text: '',
    unsent: [] as string[],
    sent: [],
    asked: undefined,
    asks: [],
    promptTokens: 0,
    provider: '',
    model: '',
    trace: { attempts: [] },
  };
  const lease = idleLease((reason) => stops.push(reason));
  const openOne = createChunkWriters({
    append(_ref, lastSeq, deltas) {
      appends.push({ lastSeq, deltas: [...deltas] });
      if (immediate) return Promise.resolve('ok');
      answering = Promise.withResolvers();
      return answering.promise;
    },
  });
  const silent = Array.from({ length: others }, () => openOne(FIRST_DELIVERY, { ...answer, unsent: [] }, lease));
  const writer = openOne(FIRST_DELIVERY, answer, lease);
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
