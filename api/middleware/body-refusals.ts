import { ServiceError } from '../../shared/errors/service-error.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';

/** `code`: of chat bodies it is another one (contract.md section 2). */
export function unknownEncoding(cause?: unknown, code: ErrorCode = 'unsupported_media_type'): ServiceError {
  return new ServiceError(code, 'The Content-Encoding must be gzip, deflate, br or identity.', { cause });
}

/** The body broke off, or is not what its headers say. */
export function unreadableBody(cause: unknown): ServiceError {
  const sentence = 'The request body could not be read; check Content-Length and Content-Encoding.';
  return new ServiceError('invalid_request', sentence, { cause });
}
