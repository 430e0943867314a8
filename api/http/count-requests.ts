import type { Response } from 'express';

import {
  ADDRESS_FAILURES_PER_MINUTE,
  LOOKUPS_PER_MINUTE,
  TENANT_LOOKUPS_PER_MINUTE,
} from '../../shared/contracts/tenant-fields.ts';
import type { Principal } from '../../shared/domain/principal.ts';
import { ServiceError, toRetrySeconds } from '../../shared/errors/service-error.ts';
import type {
  Admission,
  AdmissionStore,
  RequestFigures,
  Takes,
  WindowFigures,
} from '../../shared/requests/admission-store.ts';
import { admissionUnanswered, toRefusal } from '../../shared/requests/refusals.ts';
import type { OwnLimit } from '../contract/endpoint.ts';
import { addressBlockOf } from './head-guards.ts';
import { claimCount, contextOf, principalOf } from './request-context.ts';
import type { Guard } from './request-context.ts';
import { tooManyFailures } from './address-guard.ts';
import type { AddressGuard } from './address-guard.ts';
import type { FollowMove } from './follow-move.ts';

/** Whole seconds until the window is empty, at least 1 while it is not (docs/spec.md#headers). */
function resetSeconds(resetMs: number): number {
  return Math.max(0, Math.ceil(resetMs / 1000));
}

function remaining(limit: number, used: number): number {
  return Math.max(0, limit - used);
}

const UNKNOWN: WindowFigures = { requests: 0, requestsResetMs: 0, tokens: 0, tokensResetMs: 0 };

/** Without `figures` (Redis is unavailable) the headers name the limits as if nothing had been used. */
export function setKeyHeaders(res: Response, { limits }: Principal, figures: WindowFigures = UNKNOWN): void {
  res.setHeader('X-RateLimit-Limit-Requests', limits.rpm);
  res.setHeader('X-RateLimit-Remaining-Requests', remaining(limits.rpm, figures.requests));
  res.setHeader('X-RateLimit-Reset-Requests', resetSeconds(figures.requestsResetMs));
  res.setHeader('X-RateLimit-Limit-Tokens', limits.tpm);
  res.setHeader('X-RateLimit-Remaining-Tokens', remaining(limits.tpm, figures.tokens));
  res.setHeader('X-RateLimit-Reset-Tokens', resetSeconds(figures.tokensResetMs));
}

/** For a request without a valid key: the limit on failed authentications from its address. */
export function addressHeaders({ requests, requestsResetMs }: RequestFigures = UNKNOWN): Record<string, number> {
  return {
    'X-RateLimit-Limit-Requests': ADDRESS_FAILURES_PER_MINUTE,
    'X-RateLimit-Remaining-Requests': remaining(ADDRESS_FAILURES_PER_MINUTE, requests),
    'X-RateLimit-Reset-Requests': resetSeconds(requestsResetMs),
  };
}

export function setAddressHeaders(res: Response, figures?: RequestFigures): void {
  for (const [name, value] of Object.entries(addressHeaders(figures))) res.setHeader(name, value);
}

type Count = (requestId: string, principal: Principal) => Promise<Admission>;
type Refuse = (admission: Admission, principal: Principal) => ServiceError;

/** Counts a call on its tenant's shard, wherever the tenant has moved. */
async function countOnShard(count: Count, follow: FollowMove, res: Response): Promise<Admission> {
  for (;;) {
    const admission = await count(contextOf(res).requestId, principalOf(res));
    if (follow(res, admission) === undefined) return admission;
  }
}

/** Refusals of any call, whatever its limits. */
type Refused = 'revoked' | 'changed' | 'suspended' | 'moved' | 'moving';
const REFUSED: ReadonlySet<string> = new Set<Refused>(['revoked', 'changed', 'suspended', 'moved', 'moving']);
const isRefused = (verdict: string): verdict is Refused => REFUSED.has(verdict);

function createCounter(count: Count, follow: FollowMove, overLimit: Refuse): Guard {
  return async (_req, res) => {
    claimCount(res);
    const admission = await countOnShard(count, follow, res).catch((cause: unknown) => {
      throw admissionUnanswered(cause);
    });
    const principal = principalOf(res);
    setKeyHeaders(res, principal, admission);
    const { verdict } = admission;
    if (verdict === 'rpm' || verdict === 'throttle' || verdict === 'tenant_calls')
      throw overLimit(admission, principal);
    if (isRefused(verdict)) throw toRefusal({ ...admission, verdict }, principal, 'chat');
  };
}

/** Looking up, resuming or cancelling a request has its own limit and costs nothing of the rpm. */
export function createCountLookup(store: AdmissionStore, follow: FollowMove): Guard {
  return createCounter(store.countLookup, follow, ({ retryAfterMs, verdict }) => {
    const limit =
      verdict === 'tenant_calls'
        ? `The account's limit of ${TENANT_LOOKUPS_PER_MINUTE} look-ups per minute over all keys`
        : `The limit of ${LOOKUPS_PER_MINUTE} look-ups per minute and key`;
    const message = `${limit} is reached; wait as Retry-After says.`;
    return new ServiceError('rpm_exceeded', message, { retryAfterSeconds: toRetrySeconds(retryAfterMs) });
  });
}

export interface EndpointLimit extends OwnLimit {
  /** Such as `POST /batches`. */
  name: string;
}

/** Counts a request outside chat against the key's rpm and the endpoint's own limit. */
export function createCountRequest(store: AdmissionStore, follow: FollowMove): (own?: EndpointLimit) => Guard {
  return (own) =>
    createCounter(
      (requestId, principal) => store.count(requestId, principal, 'of tenant', own && { ...own, limit: own.perMinute }),
      follow,
      (admission, principal) => {
        const { verdict } = admission;
        if (verdict === 'tenant_calls') return toRefusal({ ...admission, verdict }, principal, 'chat');
        if (own === undefined || verdict === 'rpm')
          return toRefusal({ ...admission, verdict: 'rpm' }, principal, 'chat');
        return new ServiceError(
          'rpm_exceeded',
          `The limit of ${own.perMinute} requests per minute and ${own.of} on ${own.name} is reached; wait as Retry-After says.`,
          { retryAfterSeconds: toRetrySeconds(admission.retryAfterMs) },
        );
      },
    );
}

const AUTHENTICATION_FAILURES: ReadonlySet<string> = new Set(['missing_api_key', 'invalid_api_key', 'expired_api_key']);

async function countAddress(
  store: AdmissionStore,
  guard: AddressGuard,
  error: ServiceError,
  res: Response,
): Promise<ServiceError> {
  const { requestId, hasFailedKey } = contextOf(res);
  const address = addressBlockOf(res.req.ip);
  const held = guard.heldOf(address);
  // Other refusals of strangers count for nothing, so they cost no call to Redis.
  if (hasFailedKey !== true && !AUTHENTICATION_FAILURES.has(error.code)) {
    setAddressHeaders(res, held);
    return error;
  }
  if (held !== undefined) {
    setAddressHeaders(res, held);
    return tooManyFailures(held.retryAfterMs);
  }
  const count = await store.countAddress(requestId, address);
  setAddressHeaders(res, count);
  if (count.allowed) return error;
  guard.hold(address, count);
  return tooManyFailures(count.retryAfterMs);
}

/**
 * Counts a refused request against its key, or a failed authentication against its address, so that junk is limited
 * too. Returns the error to send: beyond the limit, a 429. If Redis does not answer, the refusal stands and the headers
 * name only the limits.
 */
export function createRefusalCounter(
  store: AdmissionStore,
  guard: AddressGuard,
  follow: FollowMove,
  note: (error: ServiceError, res: Response) => void,
) {
  async function countKey(error: ServiceError, res: Response, takes: Takes): Promise<ServiceError> {
    const count: Count = (requestId, caller) => store.count(requestId, caller, takes);
    const admission = await countOnShard(count, follow, res);
    const principal = principalOf(res);
    setKeyHeaders(res, principal, admission);
    const { verdict } = admission;
    // The scope comes before the tenant's status (docs/spec.md#chat-request).
    if (verdict === 'suspended' && error.code === 'endpoint_not_allowed') return error;
    if (verdict === 'moved' || verdict === 'moving') return error;
    return verdict === 'rpm' || verdict === 'tenant_calls' || isRefused(verdict)
      ? toRefusal({ ...admission, verdict }, principal, 'chat')
      : error;
  }

  return async (error: ServiceError, res: Response): Promise<ServiceError> => {
    // A response with these headers has already been counted; one of admission is remembered.
    if (res.hasHeader('X-RateLimit-Limit-Requests')) {
      note(error, res);
      return error;
    }
    const { principal } = contextOf(res);
    try {
      if (principal === undefined) return await countAddress(store, guard, error, res);
      if (claimCount(res))
        return await countKey(error, res, contextOf(res).chatName === undefined ? 'of tenant' : 'of key');
      if (error.code === 'rpm_exceeded') return await countKey(error, res, 'nothing');
      // Another handler has tried to count the request and got no answer.
    } catch {
      // Redis is unavailable.
    }
    if (principal === undefined) setAddressHeaders(res);
    else setKeyHeaders(res, principal);
    return error;
  };
}
