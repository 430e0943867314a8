import { expect, it } from '@jest/globals';

import { ProviderTimeout } from '../../../../workers/pipeline/run-provider-call.ts';
import { classifyFailure } from '../../../../workers/pipeline/failure-class.ts';
import { Stopped } from '../../../../workers/pipeline/stage.ts';
import { ProviderError, faultOfStatus } from '../../../../workers/providers/provider.ts';

const answered = (status: number) => new ProviderError(faultOfStatus(status), `status ${status}`, { status });

it.each([408, 409, 429, 500, 502, 503, 529])('counts status %d against the provider', (status) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'failed', reason: `status_${status}` });
});

it.each([
  [401, 'authentication'],
  [402, 'payment_required'],
  [403, 'forbidden'],
])('takes status %d as the provider’s refusal of all we send', (status, reason) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'refused', reason });
});

it.each([400, 413, 422])('never counts the caller’s own %d', (status) => {
  expect(classifyFailure(answered(status))).toEqual({ kind: 'void' });
});

it('takes a 403 of a content filter as what it is: a word about one prompt, not about our account', () => {
  expect(classifyFailure(new ProviderError('filtered', 'flagged', { status: 403 }))).toEqual({ kind: 'void' });
});

it('counts a 403 of a firewall like any failure: it may speak of one prompt', () => {
  const blocked = new ProviderError('blocked', 'blocked', { status: 403 });

  expect(classifyFailure(blocked)).toEqual({ kind: 'failed', reason: 'status_403' });
});

it('does not count a model that the provider does not have: its other models may serve', () => {
  expect(classifyFailure(answered(404))).toEqual({ kind: 'void' });
});

it('counts broken connections, broken answers and time limits', () => {
  expect(classifyFailure(new ProviderError('transient', 'reset'))).toEqual({
    kind: 'failed',
    reason: 'connection_or_format',
  });
  expect(classifyFailure(new ProviderTimeout('first token', 5))).toEqual({ kind: 'failed', reason: 'timeout' });
});

it.each([new Stopped('cancelled'), new Stopped('deadline'), new Error('a bug')])(
  'does not count what the provider has no part in (%s)',
  (error) => {
    expect(classifyFailure(error)).toEqual({ kind: 'void' });
  },
);
