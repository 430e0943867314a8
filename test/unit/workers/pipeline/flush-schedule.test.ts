import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { openWriter, texts, turn } from '../../../support/writer-lab.ts';

describe('text on its way to the stream', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('goes on beats of 80 ms while a worker has more than 50 streams, and is gathered for 15 ms again after that', async () => {
    const { writer, appends, silent } = openWriter(0, { others: 50 });
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
    const { silent } = openWriter(0, { others: streams - 1 });
    for (const stream of silent) stream.write('a');
    await turn();
    const readAt = new Map<number, number>();
    const count = (at: number) => readAt.set(at, (readAt.get(at) ?? 0) + 1);

    for (const stream of silent) stream.scheduleRead()?.(() => count(performance.now() % 80));
    await jest.advanceTimersByTimeAsync(100);

    const beats = [...readAt.keys()].sort((one, other) => one - other);
    expect(beats).toEqual(Array.from({ length: moments }, (_, beat) => beat * apart));
    for (const read of readAt.values()) expect(Math.abs(read - streams / moments)).toBeLessThanOrEqual(1);
  });

  it('waits for no beat where it was read on one', async () => {
    const { writer, appends } = openWriter(0, { others: 50 });
    writer.write('a');
    await jest.advanceTimersByTimeAsync(40);

    writer.write('b');
    await turn();

    expect(texts(appends)).toEqual(['a', 'b']);
  });

  it('is read on beats once a piece is out, while a worker has more than 50 streams', async () => {
    const { writer, silent } = openWriter(0, { others: 50 });
    expect(writer.scheduleRead()).toBeUndefined();
    writer.write('a');
    await turn();
    const readOn = jest.fn();

    writer.scheduleRead()?.(readOn);
    await jest.advanceTimersByTimeAsync(100);
    expect(readOn).toHaveBeenCalledTimes(1);
    await silent[0]?.settle();

    expect(writer.scheduleRead()).toBeUndefined();
  });
});
