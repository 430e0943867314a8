import { describe, expect, it } from '@jest/globals';

import { encodeEntry } from '../../../../shared/contracts/events.ts';
import type { Terminal } from '../../../../shared/contracts/events.ts';
import { endOf, outageOf } from '../../../../shared/domain/request-times.ts';
import type { ErrorCode } from '../../../../shared/errors/codes.ts';

const usage = { promptTokens: 0, completionTokens: 0 };

function entriesOf(deltas: string[], code?: ErrorCode) {
  const error = code === undefined ? {} : { error: { code, message: 'It failed.' } };
  const terminal: Terminal = { finishReason: code === undefined ? 'stop' : 'error', usage, ...error };
  return { entries: [{ lastSeq: deltas.length + 1, payload: encodeEntry(deltas, terminal) }] };
}

describe('an end that says nothing about its request', () => {
  it.each<ErrorCode>(['model_unavailable', 'timeout'])('failed without text with %s', (code) => {
    expect(outageOf(endOf(entriesOf([], code)))).toBe(code);
  });

  it.each<[string, string[], ErrorCode | undefined]>([
    ['succeeded', ['Hi'], undefined],
    ['has text, which is charged', ['Hi'], 'model_unavailable'],
    ['was refused for what it says', [], 'content_policy_violation'],
    ['met a bug', [], 'internal_error'],
  ])('is none that %s', (_what, deltas, code) => {
    expect(outageOf(endOf(entriesOf(deltas, code)))).toBeUndefined();
  });
});
