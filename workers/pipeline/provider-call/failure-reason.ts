import { Stopped } from '../stage.ts';
import { ProviderError } from '../../providers/provider.ts';
import { ProviderTimeout } from './provider-call-clock.ts';

/**
 * Why a call ended, in one word for timelines and breakers: the provider's own text is not for the caller's eyes.
 */
export function failureReason(error: unknown): string {
  if (error instanceof ProviderTimeout) return 'timeout';
  if (error instanceof ProviderError)
    return error.status === undefined ? 'connection_or_format' : `status_${error.status}`;
  return error instanceof Stopped ? error.reason : 'failed';
}
