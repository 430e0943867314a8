import { describe, expect, it } from '@jest/globals';

import type { Route } from '../../../../workers/pipeline/call-target.ts';
import { BreakerOpenError } from '../../../../workers/pipeline/breakers.ts';
import { TooLongError } from '../../../../workers/pipeline/fit-window.ts';
import { addFailure, noFailures, worstOf } from '../../../../workers/pipeline/generate.ts';
import { ProviderError } from '../../../../workers/providers/provider.ts';
import { readyCall } from '../../../support/ready-call.ts';

const { target, provider } = readyCall().input;
const routeOf = (contextWindow: number): Route => ({ target: { ...target, contextWindow }, provider });

const busy = (retryAfterMs: number) => new ProviderError('transient', 'busy', { retryAfterMs });

/** Adds one after the other. */
function after(...errors: readonly unknown[]) {
  const failures = noFailures();
  const canOthersHelp = errors.map((error) => addFailure(failures, error, routeOf(1_000)));
  return { failures, canOthersHelp };
}

describe('the failures of the targets of a request', () => {
  it('let the next target be asked unless the request itself is at fault', () => {
    const faults = ['transient', 'flawed', 'silent', 'refused', 'blocked', 'too_long', 'filtered', 'caller'] as const;
    const canHelp = faults.filter((fault) => after(new ProviderError(fault, 'failed')).canOthersHelp[0]);
    expect(canHelp).toEqual(['transient', 'flawed', 'silent', 'refused', 'blocked', 'too_long']);
  });

  it('end with what is no failure of a target', () => {
    expect(after(new Error('stopped')).canOthersHelp).toEqual([false]);
  });

  it('show the caller a call that failed before a breaker, and a breaker before a prompt that is too long', () => {
    const [called, open, tooLong] = [busy(0), new BreakerOpenError('p', 5), new TooLongError(9, 8)];
    expect(worstOf(after(called, open, tooLong).failures)).toBe(called);
    expect(worstOf(after(tooLong, open).failures)).toBe(open);
    expect(worstOf(after(tooLong).failures)).toBe(tooLong);
  });

  it('show the breaker that closes first, and the prompt that lacks the fewest tokens', () => {
    const [late, soon] = [new BreakerOpenError('p', 900), new BreakerOpenError('q', 100)];
    expect(after(late, soon).failures.open).toBe(soon);
    const [far, near] = [new TooLongError(900, 100), new TooLongError(900, 800)];
    expect(after(far, near).failures.tooLong).toBe(near);
  });
});
