import { ProviderError } from '../../providers/provider.ts';
import { BreakerOpenError } from '../breakers/circuit.ts';
import { TooLongError } from '../prompt/fit-window.ts';
import type { Route } from './call-target.ts';

/** How the targets of a request have failed so far. */
export interface TargetFailures {
  /** The failure of the target that was called last. */
  called: unknown;
  /** Among the skipped targets, the failure of the one whose circuit breaker lets a call through first. */
  open: BreakerOpenError | undefined;
  /** The failure of the target whose window was too small by the fewest tokens. */
  tooLong: TooLongError | undefined;
  /** Targets with a smaller context window need not be called. */
  windowTokensMin: number;
  /** Milliseconds until the first target may be called again; Infinity: no target has said when. */
  waitMs: number;
}

export function noFailures(): TargetFailures {
  return { called: undefined, open: undefined, tooLong: undefined, windowTokensMin: 0, waitMs: Infinity };
}

/** The failure to report to the caller: a failed call before an open breaker, and that before a prompt's length. */
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

/** Records why a target gave no answer. False: no other target can help. */
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
