import { describe, expect, it } from '@jest/globals';

import { keepIds, keepName, keepReason } from '../../../../../api/admin/queues/redacted-queue.ts';

const ID = 'req_0123456789abcdefABCDEFGH';

describe('the board', () => {
  it('keeps the ids of an object and nothing else', () => {
    const data = { requestId: ID, text: 'Hi', nested: { requestId: ID }, list: [ID], count: 5, close: `${ID}x` };
    expect(keepIds(data)).toEqual({ requestId: ID });
  });

  it.each([['Hi'], [5], [true], [['Hi']]])('the board hides %p', (value) => {
    expect(keepIds(value)).toBe('[redacted]');
  });

  it('the board keeps that there is nothing', () => {
    expect(keepIds(null)).toBeNull();
    expect(keepIds(undefined)).toBeUndefined();
  });

  it('the board keeps names that are words of ours', () => {
    expect(keepName('chat')).toBe('chat');
    expect(keepName('What is a pupil?')).toBe('[redacted]');
    expect(keepName({ name: 'chat' })).toBe('[redacted]');
  });

  it("keeps reasons of a closed list: the service's codes and BullMQ's own", () => {
    expect(keepReason('model_unavailable')).toBe('model_unavailable');
    expect(keepReason('job stalled more than allowable limit')).toBe('job stalled more than allowable limit');
    expect(keepReason('Unexpected token H in "Hello"')).not.toContain('Hello');
    expect(keepReason('constructor')).toContain('[redacted]');
  });
});
