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
});
