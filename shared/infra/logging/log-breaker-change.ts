import type { BreakerChange } from '../../domain/routing/breaker.ts';
import type { Logger } from './logger.ts';

/** One line for each change of a breaker in the fleet, with all that an alarm needs. */
export function logBreakerChange(log: Logger, { provider, from, to, reason, retryAt, errors }: BreakerChange): void {
  const fields = { provider, from, to, reason, errors, ...(retryAt === null ? {} : { retryAt }) };
  if (to === 'open') log.warn('The circuit breaker of a provider has opened.', fields);
  else log.info('The circuit breaker of a provider has changed.', fields);
}
