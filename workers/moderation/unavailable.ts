import { ServiceError } from '../../shared/errors/service-error.ts';

/** A backend that is down fails closed (docs/spec/contract.md section 4): no verdict, no answer. */
export function moderationUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    'model_unavailable',
    'Content moderation is not available at the moment; try again shortly.',
    { cause, retryAfterSeconds: 5 },
  );
}
