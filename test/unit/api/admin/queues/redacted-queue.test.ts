import { describe, expect, it } from '@jest/globals';

import { keepFacts, keepName, keepReason } from '../../../../../api/admin/queues/redacted-queue.ts';

const ID = 'req_0123456789abcdefABCDEFGH';

describe('the board', () => {
  it('keeps the ids of an object and nothing else', () => {
    const data = { requestId: ID, text: 'Hi', nested: { requestId: ID }, list: [ID], count: 5, close: `${ID}x` };
    expect(keepFacts(data)).toEqual({ requestId: ID });
  });

  it('keeps what a kept job says of its request, each fact only where it looks like one', () => {
    const facts = {
      tenantId: `ten${ID.slice(3)}`,
      tier: 'oloid',
      model: 'gpt-5-mini',
      tookMs: 12,
      errorCode: 'timeout',
    };
    expect(keepFacts(facts)).toEqual(facts);
    const words = 'what a pupil said';
    expect(keepFacts({ tier: words, model: words, provider: words, tookMs: words, errorCode: words })).toEqual({});
  });

  it.each([['Hi'], [5], [true], [['Hi']]])('the board hides %p', (value) => {
    expect(keepFacts(value)).toBe('[redacted]');
  });

  it('the board keeps that there is nothing', () => {
    expect(keepFacts(null)).toBeNull();
    expect(keepFacts(undefined)).toBeUndefined();
  });

  it('the board keeps names that are words of ours', () => {
    expect(keepName('chat')).toBe('chat');
    expect(keepName('What is a pupil?')).toBe('[redacted]');
    expect(keepName({ name: 'chat' })).toBe('[redacted]');
  });

  it("keeps reasons of a closed list: the service's codes and BullMQ's own", () => {
    expect(keepReason('model_unavailable')).toBe('model_unavailable');
    expect(keepReason('model_unavailable: worker_died')).toBe('model_unavailable: worker_died');
    const failed = 'model_unavailable: openai gpt-5-mini status_500, attempt 3';
    expect(keepReason(failed)).toBe(failed);
    expect(keepReason('model_unavailable: Hello Anna, attempt 3')).not.toContain('Anna');
    expect(keepReason(`${failed}\nHello`)).not.toContain('Hello');
    expect(keepReason('job stalled more than allowable limit')).toBe('job stalled more than allowable limit');
    expect(keepReason('Unexpected token H in "Hello"')).not.toContain('Hello');
    expect(keepReason('constructor')).toContain('[redacted]');
  });
});
