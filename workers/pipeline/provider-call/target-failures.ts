import { ProviderError } from '../../providers/provider.ts';
import { BreakerOpenError } from '../breakers/circuit.ts';
import { TooLongError } from '../prompt/fit-window.ts';
import type { Route } from './call-target.ts';

/** What the targets of a request have failed with so far. */
export interface TargetFailures {
  /** Of the target that was called last. */
  called: unknown;
  /** Of the target whose circuit breaker closes first, of those that were skipped. */
  open: BreakerOpenError | undefined;
  /** Of the target whose window lacked the fewest tokens. */
  tooLong: TooLongError | undefined;
  /** Targets with a smaller context window need not be asked. */
  windowTokensMin: number;
  /** Until the first target may be asked again; Infinity: none has said. */
  waitMs: number;
}

export function noFailures(): TargetFailures {
  return { called: undefined, open: undefined, tooLong: undefined, windowTokensMin: 0, waitMs: Infinity };
}

/** The failure that the caller hears of: a call's before a breaker's, and that before a prompt's length. */
export function worstOf({ called, open, tooLong }: TargetFailures): unknown {
  return called ?? open ?? tooLong;
}

function addCall(failures: TargetFailures, error: unknown, { target }: Route): boolean {
  failures.called = error;
  if (!(error instanceof ProviderError)) return false;
  failures.waitMs = Math.min(failures.waitMs, error.retryAfterMs);
  // Models count tokens differently, so a target with a window of the same size is worth a try.
  if (error.fault === 'too_long') failures.windowTokensMin = Math.max(failures.windowTokensMin, target.contextWindow);
  return error.fault !== 'caller' && error.fault !== 'filtered';
}

/** Adds why a target has not answered. False: no other target can help. */
export function addFailure(failures: TargetFailures, error: unknown, route: Route): boolean {
  const { tooLong, open } = failures;
  if (error instanceof TooLongError) {
    if (tooLong === undefined || error.overTokens < tooLong.overTokens) failures.tooLong = error;
    return true;
  }
  if (error instanceof BreakerOpenError) {
    if (open === undefined || error.retryInMs < open.retryInMs) failures.open = error;
    failures.waitMs = Math.min(failures.waitMs, error.retryInMs);
    return true;
  }
  return addCall(failures, error, route);
}
