import { ERRORS } from './codes.ts';
import type { ErrorCode } from './codes.ts';

/** docs/spec.md#error-object. */
export interface ErrorObject {
  code: ErrorCode;
  message: string;
  type: string;
  request_id: string;
  param?: string;
  reason?: string;
}

/** An error as it travels from a worker to the ingress: everything but the request id, which the reader knows. */
export interface ErrorDetail {
  code: ErrorCode;
  message: string;
  param?: string;
  reason?: string;
  retryAfterSeconds?: number;
}

/** A caller's field names may have half a surrogate pair, which UTF-8 cannot represent. */
export function toErrorObject(detail: ErrorDetail, requestId: string): ErrorObject {
  return {
    code: detail.code,
    message: detail.message.toWellFormed(),
    type: ERRORS[detail.code].type,
    request_id: requestId,
    ...(detail.param === undefined ? {} : { param: detail.param.toWellFormed() }),
    ...(detail.reason === undefined ? {} : { reason: detail.reason }),
  };
}

/** Leaves out the cause, which only operators may read. */
export function toErrorDetail(error: {
  code: ErrorCode;
  message: string;
  param?: string | undefined;
  reason?: string | undefined;
  retryAfterSeconds?: number | undefined;
}): ErrorDetail {
  const { code, message, param, reason, retryAfterSeconds } = error;
  return {
    code,
    message,
    ...(param === undefined ? {} : { param }),
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
}
