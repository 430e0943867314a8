import type { ChatRoute } from '../contracts/jobs.ts';
import type { Principal } from '../domain/principal.ts';
import { tenantCallsPerMinute } from '../contracts/tenant-fields.ts';
import type { ErrorCode } from '../errors/codes.ts';
import { ServiceError, toRetrySeconds } from '../errors/service-error.ts';
import type { Admission, Verdict } from './admission-store.ts';

export type Refusal = Exclude<Verdict, 'admitted' | 'joined' | 'balance_missing'>;

interface RefusalMessage {
  code: ErrorCode;
  message: (principal: Principal, endpoint: ChatRoute) => string;
  /** The same call can be admitted after the script's time. */
  waits: boolean;
  reason?: string;
}

const MESSAGES: Record<Refusal, RefusalMessage> = {
  void: {
    code: 'model_unavailable',
    message: () => 'The request could not be accepted in time; send it again.',
    waits: true,
  },
  revoked: { code: 'invalid_api_key', message: () => 'This API key has been revoked; use another key.', waits: false },
  changed: {
    code: 'model_unavailable',
    message: () => 'This API key has just been changed; send the request again.',
    waits: true,
  },
  suspended: {
    code: 'account_suspended',
    message: () => 'This account is suspended; contact the administrator.',
    waits: false,
  },
  rpm: {
    code: 'rpm_exceeded',
    message: ({ limits }) =>
      `The key's limit of ${limits.rpm} requests per minute is reached; wait as Retry-After says.`,
    waits: true,
  },
  throttle: {
    code: 'rpm_exceeded',
    message: ({ limits }, endpoint) =>
      endpoint === 'chat'
        ? `The limit of ${limits.chatRpm} requests per minute on POST /chat is reached; wait as Retry-After says.`
        : `The limit of ${limits.streamRpm} requests per minute on POST /chat/stream is reached; wait as Retry-After says.`,
    waits: true,
  },
  daily: {
    code: 'rpm_exceeded',
    message: ({ limits }) =>
      `The key's limit of ${limits.dailyRequests} requests per day is reached; wait as Retry-After says.`,
    waits: true,
  },
  tpm: {
    code: 'tpm_exceeded',
    message: ({ limits }) => `The key's limit of ${limits.tpm} tokens per minute is reached; wait as Retry-After says.`,
    waits: true,
  },
  tenant_calls: {
    code: 'rpm_exceeded',
    message: ({ limits }) =>
      `The account's limit of ${tenantCallsPerMinute(limits)} requests per minute over all keys, chat apart, is reached; wait as Retry-After says.`,
    waits: true,
  },
  tenant_rpm: {
    code: 'rpm_exceeded',
    message: ({ ceilings }) =>
      `The account's ceiling of ${String(ceilings.rpm)} requests per minute over all keys (tenant_rpm) is reached; wait as Retry-After says.`,
    waits: true,
  },
  tenant_tpm: {
    code: 'tpm_exceeded',
    message: ({ ceilings }) =>
      `The account's ceiling of ${String(ceilings.tpm)} tokens per minute over all keys (tenant_tpm) is reached; wait as Retry-After says.`,
    waits: true,
  },
  unpaid: {
    code: 'tpm_exceeded',
    message: () =>
      "The account's ceiling of tokens per hour that nobody pays for is reached (answers that were cancelled, filtered, failed or not JSON); it starts again with the next hour (UTC).",
    waits: true,
  },
  max_in_flight: {
    code: 'rpm_exceeded',
    message: ({ ceilings }) =>
      `The account's ceiling of ${String(ceilings.inFlight)} requests in flight over all keys (max_in_flight) is reached; send the next one when one has ended.`,
    waits: true,
  },
  test_tokens: {
    code: 'tpm_exceeded',
    message: ({ testDailyTokens }) =>
      `The daily allowance of ${testDailyTokens} tokens for the tenant's test keys is used up; it starts again at midnight UTC.`,
    waits: true,
  },
  test_tokens_in_flight: {
    code: 'tpm_exceeded',
    message: () =>
      "The rest of the daily allowance for the tenant's test keys is held by requests that are still running; try again when they have ended.",
    waits: true,
    reason: 'in_flight',
  },
  credits: {
    code: 'insufficient_credits',
    message: () => 'The prepaid credit balance is used up; buy credits or ask the administrator.',
    waits: false,
  },
  credits_in_flight: {
    code: 'insufficient_credits',
    message: () =>
      'The rest of the credit balance is held by requests that are still running; try again when they have ended.',
    waits: true,
    reason: 'in_flight',
  },
  budget: {
    code: 'budget_exceeded',
    message: ({ monthlyTokenBudget }) =>
      `The monthly budget of ${String(monthlyTokenBudget)} tokens is used up; it starts again with the next calendar month (UTC).`,
    waits: false,
  },
  budget_in_flight: {
    code: 'budget_exceeded',
    message: () =>
      'The rest of the monthly token budget is held by requests that are still running; try again when they have ended.',
    waits: true,
    reason: 'in_flight',
  },
  moved: {
    code: 'model_unavailable',
    message: () => 'This account has just been moved to another part of the service; send the request again.',
    waits: true,
  },
  moving: {
    code: 'model_unavailable',
    message: () => 'This account is being moved to another part of the service; try again as Retry-After says.',
    waits: true,
  },
  bodies: {
    code: 'model_unavailable',
    message: () =>
      "The bodies of this account's open requests hold 256 MiB, which is all that one account may have; send the next one when one has ended.",
    waits: true,
  },
  queue: { code: 'model_unavailable', message: () => 'The queue is full; try again as Retry-After says.', waits: true },
  queue_share: {
    code: 'model_unavailable',
    message: () =>
      "This account's waiting requests fill half of the queue, which is all that one account may take; try again as Retry-After says.",
    waits: true,
  },
};

/** Redis gave no answer, so nobody knows whether the limits allow the request. */
export function admissionUnanswered(cause: unknown): ServiceError {
  return new ServiceError('model_unavailable', 'The service cannot take requests at the moment; try again shortly.', {
    cause,
    retryAfterSeconds: 1,
  });
}

/** Long enough for some requests to end. A refusal costs Redis nothing, so callers may ask soon. */
const FULL_RETRY_SECONDS = 2;

/** The caller may come again when some requests have ended (docs/spec.md#stores-away). */
export function noRoom(cause?: unknown): ServiceError {
  return new ServiceError('model_unavailable', 'The service has no room for new requests; try again shortly.', {
    retryAfterSeconds: FULL_RETRY_SECONDS,
    ...(cause === undefined ? {} : { cause }),
  });
}

export function toRefusal(
  admission: Pick<Admission, 'retryAfterMs'> & { verdict: Refusal },
  principal: Principal,
  endpoint: ChatRoute,
): ServiceError {
  const { code, message, waits, reason } = MESSAGES[admission.verdict];
  return new ServiceError(code, message(principal, endpoint), {
    ...(waits ? { retryAfterSeconds: toRetrySeconds(admission.retryAfterMs) } : {}),
    ...(reason === undefined ? {} : { reason }),
  });
}
