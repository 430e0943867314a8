import { jest } from '@jest/globals';

import type { DeliveryRef, WriteOutcome } from '../../shared/infra/redis/requests/request-store.ts';
import { createChunkWriters } from '../../workers/pipeline/chunks/chunk-writer.ts';
import type { Lease } from '../../workers/pipeline/stage.ts';

const REF: DeliveryRef = {
  shard: 0,
  requestId: 'req_1',
  tenantId: 'ten_1',
  keyId: 'key_1',
  queue: 'interactive',
  fence: 1,
};

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
    promptTokens: 0,
    provider: '',
    model: '',
    trace: { attempts: [] },
  };
  const lease: Lease = {
    signal: new AbortController().signal,
    need: () => undefined,
    cover: () => Promise.resolve(true),
    granted: () => Infinity,
    grant: () => Promise.resolve(),
    exhaust: () => undefined,
    check: () => Promise.resolve(),
    stop: (reason) => stops.push(reason),
    release: () => undefined,
  };
  const openOne = createChunkWriters({
    append(_ref, lastSeq, deltas) {
      appends.push({ lastSeq, deltas: [...deltas] });
      if (immediate) return Promise.resolve('ok');
      answering = Promise.withResolvers();
      return answering.promise;
    },
  });
  const silent = Array.from({ length: others }, () => openOne(REF, { ...answer, unsent: [] }, lease));
  const writer = openOne(REF, answer, lease);
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
