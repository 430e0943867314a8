import { describe, expect, it } from '@jest/globals';

import { errorOf } from '../../../../api/relay/sse.ts';

const usage = { promptTokens: 0, completionTokens: 0 };

describe('a request that ended without an answer', () => {
  it('is answered with everything the worker said of the error', () => {
    const error = {
      code: 'insufficient_credits',
      message: 'Buy some.',
      param: 'messages',
      reason: 'in_flight',
      retryAfterSeconds: 3,
    } as const;

    expect(errorOf({ finishReason: 'error', usage, error }, false)).toMatchObject(error);
  });

  it('is a conflict when it was cancelled before any text', () => {
    expect(errorOf({ finishReason: 'cancelled', usage }, false)).toMatchObject({ code: 'conflict' });
    expect(errorOf({ finishReason: 'cancelled', usage }, true)).toBeUndefined();
  });

  it.each(['stop', 'length', 'content_filter'] as const)(
    'a request that ended without an answer is none for %s, even without text',
    (finishReason) => {
      expect(errorOf({ finishReason, usage }, false)).toBeUndefined();
    },
  );
});
