import type { Request, RequestHandler, Response } from 'express';

import type { Principal } from '../../shared/domain/principal.ts';
import {
  allowsScope,
  API_KEY_LENGTH_MAX,
  hashApiKey,
  isApiKey,
  looksLikeApiKey,
  bearerTokenOf,
} from '../../shared/domain/api-key.ts';
import type { Scope } from '../../shared/domain/api-key.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { AddressGuard } from './address-guard.ts';
import type { PrincipalCache } from './principal-cache.ts';
import { addressBlockOf } from './head-guards.ts';
import { contextOf, principalOf } from './request-context.ts';
import type { Guard, Step } from './request-context.ts';

export interface AuthenticateDeps {
  principals: PrincipalCache;
  guard: AddressGuard;
  keyPrefix: string;
  clock: Clock;
  /** Called with every accepted key, for `last_used_at`. */
  onUse: (keyId: string, now: number) => void;
}

/** The token of `Authorization: Bearer <API_KEY>`; throws `missing_api_key` if there is none. */
function tokenOf(header: string | undefined): string {
  const token = bearerTokenOf(header);
  if (token === '') {
    throw new ServiceError('missing_api_key', 'No API key was sent; add the header `Authorization: Bearer <API_KEY>`.');
  }
  if (token === undefined) {
    throw new ServiceError(
      'invalid_api_key',
      'The Authorization header must be `Bearer <API_KEY>` with one key and nothing else.',
    );
  }
  return token;
}

function assertUsable(principal: Principal | undefined, now: number): asserts principal is Principal {
  if (principal === undefined) {
    throw new ServiceError('invalid_api_key', 'This API key is unknown; check that it was copied whole.');
  }
  if (principal.keyStatus === 'revoked') {
    throw new ServiceError('invalid_api_key', 'This API key has been revoked; use another key.');
  }
  if (principal.expiresAt !== undefined && principal.expiresAt <= now) {
    throw new ServiceError('expired_api_key', 'This API key has expired; create a new one.');
  }
}

/** Calls `assertUsable`, and keeps the refused key for the log of requests. */
function assertAccepted(res: Response, principal: Principal | undefined, now: number): asserts principal is Principal {
  try {
    assertUsable(principal, now);
  } catch (error) {
    if (principal !== undefined) contextOf(res).refusedPrincipal = principal;
    throw error;
  }
}

/** Accepts or refuses the key. Scope and tenant status are checked after it (docs/spec.md#chat-request). */
export function createAuthenticate({ principals, guard, keyPrefix, clock, onUse }: AuthenticateDeps): Guard {
  const ownKeys = `${keyPrefix}_sk_`;

  function accept(res: Response, principal: Principal, now: number): void {
    contextOf(res).principal = principal;
    onUse(principal.keyId, now);
  }

  /** A known key is not held up by failed keys from the same address. */
  function find(hash: string, now: number, ip: string | undefined): Promise<Principal | undefined> {
    const look = () => principals.find(hash, now);
    return principals.isKnown(hash, now) ? look() : guard.lookUp(addressBlockOf(ip), look);
  }

  async function look({ ip }: Request, res: Response, token: string, now: number): Promise<void> {
    if (!isApiKey(token, keyPrefix)) {
      throw new ServiceError(
        'invalid_api_key',
        looksLikeApiKey(token, keyPrefix)
          ? 'This API key is not as it was given: a character is mistyped, missing or too many; copy it again.'
          : `This is no API key; keys look like ${keyPrefix}_sk_live_ and 32 characters.`,
      );
    }
    const principal = await find(hashApiKey(token), now, ip).catch((cause: unknown) => {
      if (cause instanceof ServiceError) throw cause;
      throw new ServiceError('model_unavailable', 'The key cannot be checked at the moment; try again shortly.', {
        cause,
        retryAfterSeconds: 1,
      });
    });
    assertAccepted(res, principal, now);
    accept(res, principal, now);
  }

  return (req, res) => {
    const token = tokenOf(req.headers.authorization);
    const now = clock.now();
    // The checksum spares MongoDB look-ups of arbitrary text. A key found seconds ago does not need it.
    const isLikely = token.length <= API_KEY_LENGTH_MAX && token.startsWith(ownKeys);
    const known = isLikely ? principals.fresh(hashApiKey(token), now) : undefined;
    if (known === undefined) return look(req, res, token, now);
    assertAccepted(res, known, now);
    accept(res, known, now);
    return undefined;
  };
}

/**
 * For answers that do not depend on the key: an unknown path, a wrong method. A valid key is counted and its limits go
 * into the headers; an invalid one is counted against its address.
 */
export function createIdentify(authenticate: Guard): RequestHandler {
  return async (req, res, next) => {
    try {
      if (req.headers.authorization !== undefined) await authenticate(req, res);
    } catch (fault) {
      // A key that cannot be checked at the moment has not failed.
      const isUnchecked = !(fault instanceof ServiceError) || fault.code === 'model_unavailable';
      contextOf(res).hasFailedKey = !isUnchecked;
    }
    next();
  };
}

/** Throws `endpoint_not_allowed` for a key that has none of the scopes. */
export function assertScope(res: Response, ...accepted: readonly Scope[]): void {
  const { scopes } = principalOf(res);
  if (accepted.some((scope) => allowsScope(scopes, scope))) return;
  const names = accepted.map((scope) => `\`${scope}\``).join(', ');
  throw new ServiceError(
    'endpoint_not_allowed',
    `This API key has no scope for this endpoint; it needs ${names} or \`*\`.`,
  );
}

/** Refuses keys that have none of the scopes, then suspended tenants: the order of docs/spec.md#chat-request. */
export function requireScope(...accepted: readonly Scope[]): Step {
  return (_req, res) => {
    assertScope(res, ...accepted);
    if (principalOf(res).tenantStatus === 'suspended') {
      throw new ServiceError('account_suspended', 'This account is suspended; contact the administrator.');
    }
  };
}
