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
import { putNewest } from '../../shared/domain/bounded-map.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { AddressGuard } from './address-guard.ts';
import { addressBlockOf } from './head-guards.ts';
import { contextOf, principalOf } from './request-context.ts';
import type { Guard, Step } from './request-context.ts';
import type { PrincipalRepository } from '../../shared/mongo/tenants/principal-repository.ts';

/** While MongoDB answers, a known key is trusted for this long, and so is the finding that a key is unknown. */
const FRESH_MS = 10_000;
const UNKNOWN_MS = 5_000;
/** While MongoDB is unavailable, an entry serves this long. Revocations (flags in Redis) still count at once. */
const STALE_MS = 15 * 60_000;
/** For this long after a failed call, stale entries are returned at once, without another time-out. */
const AWAY_MS = 10_000;
const ENTRIES_MAX = 20_000;
const UNKNOWN_MAX = 10_000;

interface Entry {
  principal: Principal;
  loadedAt: number;
  /** The entry may be out of date, so it lets nobody in. It still shows that the key is not an invented one. */
  isDoubtful?: boolean;
}

/** A look-up under way, and the invalidations since it began, which its result may not reflect. */
interface Load {
  announced: Set<string>;
  /** Some invalidations may have been missed. */
  isDoubtful: boolean;
}

/** Tells whether no invalidation concerns the result. A key that was not found may be any key announced meanwhile. */
function isCertain({ announced, isDoubtful }: Load, read: Principal | undefined): boolean {
  if (isDoubtful) return false;
  return read === undefined ? announced.size === 0 : !announced.has(read.keyId) && !announced.has(read.tenantId);
}

type Lookup = Pick<PrincipalRepository, 'findByHash'>;

function certainOf(entries: ReadonlyMap<string, Entry>, hash: string): Entry | undefined {
  const entry = entries.get(hash);
  return entry?.isDoubtful === true ? undefined : entry;
}

/** Looks keys up in MongoDB, each once at a time. `keep` gets a result that no invalidation concerns. */
function createLoads(repository: Lookup, keep: (hash: string, principal: Principal | undefined, now: number) => void) {
  /** Look-ups that other calls may join. An invalidation removes them all: they may bring what was just revoked. */
  const loading = new Map<string, Promise<Principal | undefined>>();
  const underWay = new Set<Load>();

  async function load(hash: string, now: number): Promise<Principal | undefined> {
    const since: Load = { announced: new Set(), isDoubtful: false };
    underWay.add(since);
    try {
      const principal = await repository.findByHash(hash);
      if (isCertain(since, principal)) keep(hash, principal, now);
      return principal;
    } finally {
      underWay.delete(since);
    }
  }

  function loadOnce(hash: string, now: number): Promise<Principal | undefined> {
    const running = loading.get(hash);
    if (running !== undefined) return running;
    const begun = load(hash, now).finally(() => {
      if (loading.get(hash) === begun) loading.delete(hash);
    });
    loading.set(hash, begun);
    return begun;
  }

  return {
    load: loadOnce,

    announce(id: string): void {
      for (const { announced } of underWay) announced.add(id);
      loading.clear();
    },

    doubt(): void {
      for (const load of underWay) load.isDoubtful = true;
      loading.clear();
    },
  };
}

export type PrincipalCache = ReturnType<typeof createPrincipalCache>;

export function createPrincipalCache(repository: Lookup) {
  const entries = new Map<string, Entry>();
  /** Hashes that belong to no key, and when that was learned. In `entries`, invented keys would push out real ones. */
  const unknown = new Map<string, number>();
  const loads = createLoads(repository, keep);
  let failedAt = -Infinity;

  function keep(hash: string, principal: Principal | undefined, now: number): void {
    entries.delete(hash);
    unknown.delete(hash);
    if (principal === undefined) putNewest(unknown, hash, now, UNKNOWN_MAX);
    else putNewest(entries, hash, { principal, loadedAt: now }, ENTRIES_MAX);
  }

  /** `stale` is the fallback if MongoDB is unavailable. */
  async function reload(hash: string, now: number, stale: Principal | undefined): Promise<Principal | undefined> {
    if (stale !== undefined && now - failedAt < AWAY_MS) return stale;
    try {
      return await loads.load(hash, now);
    } catch (error) {
      failedAt = now;
      if (stale !== undefined) return stale;
      throw error;
    }
  }

  function fresh(hash: string, now: number): Principal | undefined {
    const entry = certainOf(entries, hash);
    return entry !== undefined && now - entry.loadedAt < FRESH_MS ? entry.principal : undefined;
  }

  return {
    /** The principal, if `find` could return it without asking MongoDB. Undefined: call `find`. */
    fresh,

    /** Undefined: unknown key. Rejects if MongoDB is unavailable and the key is not cached. */
    async find(hash: string, now: number): Promise<Principal | undefined> {
      const found = fresh(hash, now);
      if (found !== undefined) return found;
      const entry = certainOf(entries, hash);
      const age = entry === undefined ? Infinity : now - entry.loadedAt;
      if (now - (unknown.get(hash) ?? -Infinity) < UNKNOWN_MS) return undefined;
      return reload(hash, now, age < STALE_MS ? entry?.principal : undefined);
    },

    /** Tells whether the key was known within the last 15 minutes. */
    isKnown(hash: string, now: number): boolean {
      const entry = entries.get(hash);
      return entry !== undefined && now - entry.loadedAt < STALE_MS;
    },

    relocate(tenantId: string, shard: number): void {
      for (const entry of entries.values()) {
        if (entry.principal.tenantId === tenantId) entry.principal = { ...entry.principal, shard };
      }
    },

    /** Discards what is cached for a key or a tenant, by its id. */
    invalidate(id: string): void {
      loads.announce(id);
      for (const entry of entries.values()) {
        const { principal } = entry;
        if (principal.keyId === id || principal.tenantId === id) entry.isDoubtful = true;
      }
    },

    /** Marks every entry as doubtful, because invalidations may have been missed. */
    clear(): void {
      loads.doubt();
      for (const entry of entries.values()) entry.isDoubtful = true;
      unknown.clear();
    },
  };
}

/** Often enough for people who look at `last_used_at`, rarely enough to cost nothing. */
const FLUSH_MS = 5_000;

/** Collects `last_used_at` of keys and writes it in batches. */
export function createLastUsed(repository: PrincipalRepository) {
  let noted = new Map<string, number>();

  async function flush(): Promise<void> {
    if (noted.size === 0) return;
    const batch = noted;
    noted = new Map();
    try {
      await repository.touch(batch);
    } catch {
      // MongoDB is unavailable: keep the newer of both times for the next try.
      for (const [keyId, time] of batch) noted.set(keyId, Math.max(time, noted.get(keyId) ?? 0));
    }
  }

  const flushing = repeat(
    flush,
    () => FLUSH_MS,
    () => undefined,
  );
  return {
    note: (keyId: string, now: number): void => {
      noted.set(keyId, now);
    },
    async close(): Promise<void> {
      await flushing.stop();
      await flush();
    },
  };
}

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

/** Keeps the refused key for the log of requests. */
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
 * For answers that do not depend on the key: an unknown path, a wrong method. Counts a valid key and puts its limits
 * into the headers; counts an invalid one against its address.
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
export function requireScope(scopes: readonly Scope[] | 'any'): Step {
  return (_req, res) => {
    if (scopes !== 'any') assertScope(res, ...scopes);
    if (principalOf(res).tenantStatus === 'suspended') {
      throw new ServiceError('account_suspended', 'This account is suspended; contact the administrator.');
    }
  };
}
