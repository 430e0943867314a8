import { describe, expect, it } from '@jest/globals';
import { createReceivedMessages } from '../../../../scripts/simulated-provider/received-messages.ts';

const MEBI = 1024 * 1024;

describe('createReceivedMessages', () => {
  it('forgets the oldest when the latest are large', () => {
    const received = createReceivedMessages();
    for (const id of ['a', 'b', 'c']) received.keep(id, [id], 3 * MEBI);

    expect([received.of('a'), received.of('b'), received.of('c')]).toEqual([null, ['b'], ['c']]);
  });

  it('keeps the latest call of a request, and counts its size once', () => {
    const received = createReceivedMessages();
    for (let call = 0; call < 5; call++) received.keep('a', [call], 3 * MEBI);
    received.keep('b', ['b'], 3 * MEBI);

    expect([received.of('a'), received.of('b')]).toEqual([[4], ['b']]);
  });
});
