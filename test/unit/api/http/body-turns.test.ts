import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { createBodyTurns, LARGE_BODY_TURNS } from '../../../../api/http/json-body.ts';

describe('large bodies', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const work = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

  it('are read one at a time, tenants in turn, with pauses thrice as long as the work', async () => {
    const bodies = createBodyTurns(LARGE_BODY_TURNS);
    const begun: string[] = [];
    const startedAt = performance.now();
    const read = (tenant: string) =>
      bodies.inTurn(tenant, async () => {
        begun.push(`${tenant} ${Math.round(performance.now() - startedAt)}`);
        await work(100);
      });
    const all = Promise.all([read('a'), read('a'), read('a'), read('b')]);
    await jest.advanceTimersByTimeAsync(2_000);
    await all;
    expect(begun).toEqual(['a 0', 'a 400', 'b 800', 'a 1200']);
  });

  it('are refused where too many of one tenant wait, and others are not', async () => {
    const bodies = createBodyTurns(LARGE_BODY_TURNS);
    const running = Array.from({ length: 17 }, () => bodies.inTurn('a', () => work(1)));
    expect(() => bodies.inTurn('a', () => work(1))).toThrow('Too many large');
    const other = bodies.inTurn('b', () => work(1));
    await jest.advanceTimersByTimeAsync(1_000);
    await Promise.all([...running, other]);
  });

  it('keep the last eighth of the waiting for tenants of which none wait', async () => {
    const bodies = createBodyTurns({ tenantWaitingMax: 4, waitingMax: 16, pauseRatio: 0 });
    const read = (tenant: string) => bodies.inTurn(tenant, () => work(1));
    const running = [read('runs'), ...['a', 'b', 'c', 'd'].flatMap((tenant) => [1, 2, 3].map(() => read(tenant)))];
    running.push(read('a'), read('b'));
    expect(() => read('c')).toThrow('Too many large');
    running.push(read('new'), read('newer'));
    expect(() => read('newest')).toThrow('Too many large');
    await jest.advanceTimersByTimeAsync(1_000);
    await Promise.all(running);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('not JSON'))],
    [
      'throws at once',
      () => {
        throw new Error('not JSON');
      },
    ],
  ])('go on after one that %s', async (_how, work) => {
    const bodies = createBodyTurns(LARGE_BODY_TURNS);
    const failed = bodies.inTurn('a', work).catch((error: unknown) => error);
    const next = bodies.inTurn('a', () => Promise.resolve('read'));
    await jest.advanceTimersByTimeAsync(100);
    expect(await failed).toEqual(new Error('not JSON'));
    expect(await next).toBe('read');
  });
});
