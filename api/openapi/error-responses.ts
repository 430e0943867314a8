import { isIdempotent } from '../contract/endpoint.ts';
import type { AdminEndpoint, Endpoint, Operation } from '../contract/endpoint.ts';
import { ERROR_CODES, errorSchema } from '../contract/json-schema.ts';
import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { headersOf } from '../contract/headers.ts';

/** The errors that share a status; endpoints with the same group share its description. */
export interface ErrorGroup {
  status: number;
  codes: readonly ErrorCode[];
}

function inOrder(codes: readonly ErrorCode[]): ErrorCode[] {
  return ERROR_CODES.filter((code) => codes.includes(code));
}

const ALWAYS: readonly ErrorCode[] = [
  'invalid_request',
  'missing_api_key',
  'invalid_api_key',
  'internal_error',
  'model_unavailable',
];

const OF_KEYS: readonly ErrorCode[] = ['expired_api_key', 'account_suspended', 'rpm_exceeded'];

const OF_CHAT: readonly ErrorCode[] = [
  'message_too_long',
  'too_many_messages',
  'context_length_exceeded',
  'content_policy_violation',
  'insufficient_credits',
  'budget_exceeded',
  'tpm_exceeded',
  'conflict',
  'gone',
  'idempotency_mismatch',
  'timeout',
];

/** The errors that follow from path and body, plus those the endpoint names. */
function ownErrors({ path, body, errors = [] }: Operation): readonly ErrorCode[] {
  return [
    ...(path.includes(':') ? (['not_found'] as const) : []),
    ...(body === undefined || body.kind === 'chat' ? [] : (['payload_too_large', 'unsupported_media_type'] as const)),
    ...errors,
  ];
}

export function errorsOfEndpoint(endpoint: Endpoint): ErrorCode[] {
  const { scopes, counts } = endpoint;
  return inOrder([
    ...ALWAYS,
    ...OF_KEYS,
    ...(scopes === 'any' ? [] : (['endpoint_not_allowed'] as const)),
    ...(isIdempotent(endpoint) ? (['conflict', 'idempotency_mismatch'] as const) : []),
    ...(counts === 'admission' ? OF_CHAT : []),
    ...ownErrors(endpoint),
  ]);
}

export function errorsOfAdminEndpoint(endpoint: AdminEndpoint): ErrorCode[] {
  return inOrder([
    ...ALWAYS,
    'rpm_exceeded',
    ...(endpoint.method === 'GET' ? [] : (['endpoint_not_allowed'] as const)),
    ...(endpoint.isRemembered === true ? (['conflict', 'idempotency_mismatch'] as const) : []),
    ...ownErrors(endpoint),
  ]);
}

export function groupByStatus(codes: readonly ErrorCode[]): ErrorGroup[] {
  return [...Map.groupBy(codes, (code) => ERRORS[code].status)].map(([status, group]) => ({ status, codes: group }));
}

export function nameOfGroup({ status, codes }: ErrorGroup): string {
  return [status, ...codes].join('.');
}

/** Describes all errors of a status, in words and in `x-error-codes`. */
export function describeErrorGroup(
  { status, codes }: ErrorGroup,
  headersOfStatus: (status: number) => readonly string[],
  ownExamples: object = {},
) {
  const waits = status === 429 || status === 503 || status === 402 ? ['Retry-After'] : [];
  const asks = status === 401 ? ['WWW-Authenticate'] : [];
  const retries = codes.includes('conflict') || [429, 500, 503, 504].includes(status) ? ['X-Should-Retry'] : [];
  const examples = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`).join('\n\n'),
    headers: headersOf([...headersOfStatus(status), ...asks, ...waits, ...retries]),
    content: {
      'application/json': {
        schema: errorSchema,
        examples: { ...ownExamples, ...(Object.fromEntries(examples) as object) },
      },
    },
    'x-error-codes': codes,
  };
}
