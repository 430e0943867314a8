import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { openWriter, texts, turn } from '../../../support/writer-lab.ts';

describe('text on its way to the stream', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is gathered for 15 ms after that, each piece an event of its own', async () => {
    const { writer, appends } = openWriter();
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

  it('text on its way to the stream goes as soon as 1 KB waits', async () => {
    const { writer, appends } = openWriter();
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
    const { writer, appends, hold, reply } = openWriter();
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

  it('leaves what waits at the end to the terminal event', async () => {
    const { writer, answer, appends } = openWriter();
    writer.write('a');
    await jest.advanceTimersByTimeAsync(0);
    writer.write('b');

    await writer.settle();
    await jest.advanceTimersByTimeAsync(100);

    expect(texts(appends)).toEqual(['a']);
    expect(answer).toMatchObject({ unsent: ['b'] });
  });

  it.each([
    { what: 'leaves text that comes with the end to the terminal event: one call for both', appended: [] },
    { what: 'sends it where that waits for something else', endsLater: true, appended: ['ab'] },
  ])('$what', async ({ endsLater, appended }) => {
    const { writer, answer, appends } = openWriter();
    for (const text of ['a', 'b']) writer.write(text);

    await Promise.resolve();
    await writer.settle(endsLater);
    await turn();

    expect(texts(appends)).toEqual(appended);
    expect(answer).toMatchObject({ unsent: appended.length > 0 ? [] : ['a', 'b'] });
  });

  it('is settled only when the append under way has an answer', async () => {
    const { writer, hold, reply } = openWriter();
    hold();
    writer.write('a');
    await turn();
    let settled = false;
    const settling = writer.settle().then(() => (settled = true));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(settled).toBe(false);

    await reply('ok');
    await settling;

    expect(settled).toBe(true);
  });

  it.each(['cancelled', 'superseded'] as const)('stops the delivery when the store says %s', async (outcome) => {
    const { writer, stops, hold, reply } = openWriter();
    hold();
    writer.write('a');
    await turn();

    await reply(outcome);

    expect(stops).toEqual([outcome]);
  });

  it('leaves the request to another delivery when nobody knows whether a batch was written', async () => {
    const { writer, appends, stops, hold, reply } = openWriter();
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
});
