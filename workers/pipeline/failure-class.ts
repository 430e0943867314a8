import { ProviderError } from '../providers/provider.ts';
import type { ProviderFault } from '../providers/provider.ts';
import { Stopped } from './stage.ts';
import { ProviderTimeout } from './run-provider-call.ts';

/** Why a call ended, in one word for timelines and breakers: the provider's own text must not reach the caller. */
export function failureReason(error: unknown): string {
  if (error instanceof ProviderTimeout) return 'timeout';
  if (error instanceof ProviderError)
    return error.status === undefined ? 'connection_or_format' : `status_${error.status}`;
  return error instanceof Stopped ? error.reason : 'failed';
}

/** A failed call says this about its provider. `void`: nothing, because the call was stopped or was itself wrong. */
export type FailureClass = { kind: 'void' } | { kind: 'failed'; reason: string } | { kind: 'refused'; reason: string };

/** The provider refuses everything until somebody fixes our account (docs/spec.md#routing). */
const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [401, 'authentication'],
  [402, 'payment_required'],
  [403, 'forbidden'],
]);

const COUNTED: ReadonlySet<ProviderFault> = new Set(['transient', 'silent', 'blocked']);

/**
 * Network failures, time limits, firewalls, 408, 409, 429, 5xx and broken answers count; the caller's mistakes never
 * do.
 */
export function classifyFailure(error: unknown): FailureClass {
  if (!(error instanceof ProviderError)) return { kind: 'void' };
  const refusal = error.fault === 'refused' ? REFUSALS.get(error.status) : undefined;
  if (refusal !== undefined) return { kind: 'refused', reason: refusal };
  // Other refusals, such as an unknown model, concern one target, not the whole provider.
  return COUNTED.has(error.fault) ? { kind: 'failed', reason: failureReason(error) } : { kind: 'void' };
}
