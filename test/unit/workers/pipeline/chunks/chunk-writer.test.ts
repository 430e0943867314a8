import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import type { DeliveryRef, WriteOutcome } from '../../../../../shared/infra/redis/requests/request-store.ts';
import { createChunkWriters } from '../../../../../workers/pipeline/chunks/chunk-writer.ts';
import type { Lease } from '../../../../../workers/pipeline/stage.ts';

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

/** A writer over a store whose answers the test gives itself. */
function open(sentSeq = 0, { others = 0 } = {}) {
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
  const openWriter = createChunkWriters({
    append(_ref, lastSeq, deltas) {
      appends.push({ lastSeq, deltas: [...deltas] });
      if (immediate) return Promise.resolve('ok');
      answering = Promise.withResolvers();
      return answering.promise;
    },
  });
  const silent = Array.from({ length: others }, () => openWriter(REF, { ...answer, unsent: [] }, lease));
  const writer = openWriter(REF, answer, lease);
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
const turn = () => jest.advanceTimersByTimeAsync(0);

const texts = (appends: readonly Append[]) => appends.map(({ deltas }) => deltas.join(''));

describe('text on its way to the stream', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('text on its way to the stream begins at once with the first piece', async () => {
    const { writer, appends } = open();

    writer.write('a');
    await turn();

    expect(appends).toEqual([{ lastSeq: 1, deltas: ['a'] }]);
  });

  it('is gathered for 15 ms after that, each piece an event of its own', async () => {
    const { writer, appends } = open();
    writer.write('a');
    await jest.advanceTimersByTimeAsync(1);

    writer.write('b');
    await jest.advanceTimersByTimeAsync(10);
    writer.write('c');
    await jest.advanceTimersByTimeAsync(3);
    expect(appends).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(1);

    expect(appends).toEqual([
      { lastSeq: 1, deltas: ['a'] },
      { lastSeq: 3, deltas: ['b', 'c'] },
    ]);
  });

  it('goes on beats of 80 ms while a worker has more than 50 streams, and is gathered for 15 ms again after that', async () => {
    const { writer, appends, silent } = open(0, { others: 50 });
    const [other] = silent;
    writer.write('a');
    other?.write('A');
    await turn();
    await jest.advanceTimersByTimeAsync(1);
    expect(texts(appends)).toEqual(['a', 'A']);
    writer.write('b');
    await jest.advanceTimersByTimeAsync(10);
    other?.write('B');
    while (appends.length === 2) await jest.advanceTimersByTimeAsync(1);
    expect(texts(appends)).toEqual(['a', 'A', 'b', 'B']);

    writer.write('c');
    await jest.advanceTimersByTimeAsync(79);
    expect(appends).toHaveLength(4);
    await jest.advanceTimersByTimeAsync(1);
    expect(texts(appends).at(-1)).toBe('c');

    await silent[0]?.settle();
    await silent[1]?.settle();
    writer.write('d');
    await jest.advanceTimersByTimeAsync(15);

    expect(texts(appends).at(-1)).toBe('d');
  });

  it.each([
    { streams: 51, moments: 2, apart: 40 },
    { streams: 100, moments: 2, apart: 40 },
    { streams: 160, moments: 4, apart: 20 },
    { streams: 500, moments: 4, apart: 20 },
  ])('$streams streams are read on $moments beats, $apart ms apart', async ({ streams, moments, apart }) => {
    const { silent } = open(0, { others: streams - 1 });
    for (const stream of silent) stream.write('a');
    await turn();
    const readAt = new Map<number, number>();
    const count = (at: number) => readAt.set(at, (readAt.get(at) ?? 0) + 1);

    for (const stream of silent) stream.readLater()?.(() => count(performance.now() % 80));
    await jest.advanceTimersByTimeAsync(100);

    const beats = [...readAt.keys()].sort((one, other) => one - other);
    expect(beats).toEqual(Array.from({ length: moments }, (_, beat) => beat * apart));
    for (const read of readAt.values()) expect(Math.abs(read - streams / moments)).toBeLessThanOrEqual(1);
  });

  it('waits for no beat where it was read on one', async () => {
    const { writer, appends } = open(0, { others: 50 });
    writer.write('a');
    await jest.advanceTimersByTimeAsync(40);

    writer.write('b');
    await turn();

    expect(texts(appends)).toEqual(['a', 'b']);
  });

  it('is read on beats once a piece is out, while a worker has more than 50 streams', async () => {
    const { writer, silent } = open(0, { others: 50 });
    expect(writer.readLater()).toBeUndefined();
    writer.write('a');
    await turn();
    const readOn = jest.fn();

    writer.readLater()?.(readOn);
    await jest.advanceTimersByTimeAsync(100);
    expect(readOn).toHaveBeenCalledTimes(1);
    await silent[0]?.settle();

    expect(writer.readLater()).toBeUndefined();
  });

  it('waits for nothing when the last batch is 15 ms ago', async () => {
    const { writer, appends } = open();

    for (const text of ['a', 'b', 'c']) {
      writer.write(text);
      await jest.advanceTimersByTimeAsync(15);
    }

    expect(texts(appends)).toEqual(['a', 'b', 'c']);
  });

  it('text on its way to the stream goes as soon as 1 KB waits', async () => {
    const { writer, appends } = open();
    writer.write('a');
    await jest.advanceTimersByTimeAsync(0);

    writer.write('b'.repeat(1_000));
    expect(appends).toHaveLength(1);
    writer.write('c'.repeat(24));
    await turn();

    expect(appends).toHaveLength(2);
    await jest.advanceTimersByTimeAsync(100);
    expect(appends).toHaveLength(2);
  });

  it('has one append under way at a time, and the next takes all that came meanwhile', async () => {
    const { writer, appends, hold, reply } = open();
    hold();
    writer.write('a');
    await turn();
    for (let piece = 0; piece < 50; piece += 1) writer.write(`${piece} `.repeat(50));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(appends).toHaveLength(1);

    await reply('ok');

    expect(appends).toHaveLength(2);
    expect(appends[1]).toMatchObject({ lastSeq: 51 });
  });

  it('numbers on from what an earlier attempt has sent', async () => {
    const { writer, appends } = open(7);

    writer.write('a');
    await turn();

    expect(appends).toEqual([{ lastSeq: 8, deltas: ['a'] }]);
  });

  it('leaves what waits at the end to the terminal event', async () => {
    const { writer, answer, appends } = open();
    writer.write('a');
    await jest.advanceTimersByTimeAsync(0);
    writer.write('b');

    await writer.settle();
    await jest.advanceTimersByTimeAsync(100);

    expect(texts(appends)).toEqual(['a']);
    expect(answer).toMatchObject({ sentSeq: 1, unsent: ['b'] });
  });

  it.each([
    { what: 'leaves text that comes with the end to the terminal event: one call for both', appended: [] },
    { what: 'sends it where that waits for something else', endsLater: true, appended: ['ab'] },
  ])('$what', async ({ endsLater, appended }) => {
    const { writer, answer, appends } = open();
    for (const text of ['a', 'b']) writer.write(text);

    await Promise.resolve();
    await writer.settle(endsLater);
    await turn();

    expect(texts(appends)).toEqual(appended);
    expect(answer).toMatchObject({ sentSeq: 2 * appended.length, unsent: appended.length > 0 ? [] : ['a', 'b'] });
  });

  it('is settled only when the append under way has an answer', async () => {
    const { writer, answer, hold, reply } = open();
    hold();
    writer.write('a');
    await turn();
    let settled = false;
    const settling = writer.settle().then(() => (settled = true));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(settled).toBe(false);

    await reply('ok');
    await settling;

    expect(answer.sentSeq).toBe(1);
  });

  it.each(['cancelled', 'superseded'] as const)('stops the attempt when the store says %s', async (outcome) => {
    const { writer, stops, hold, reply } = open();
    hold();
    writer.write('a');
    await turn();

    await reply(outcome);

    expect(stops).toEqual([outcome]);
  });

  it('leaves the request to another attempt when nobody knows whether a batch was written', async () => {
    const { writer, appends, stops, hold, reply } = open();
    hold();
    writer.write('a');
    await turn();
    writer.write('b');

    await reply(new Error('Command timed out'));
    await jest.advanceTimersByTimeAsync(100);

    expect(stops).toEqual(['superseded']);
    expect(texts(appends)).toEqual(['a']);
    await expect(writer.settle()).resolves.toBeUndefined();
  });

  it('text on its way to the stream leaves no timer behind', async () => {
    const { writer } = open();
    writer.write('a');
    await turn();
    writer.write('b');

    await writer.settle();

    expect(jest.getTimerCount()).toBe(0);
  });
});
