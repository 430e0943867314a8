import type { NextFunction, Request, Response } from 'express';

import type { AdminToken } from '../../../shared/config/secret-settings.ts';
import { bearerTokenOf, isSameSecret } from '../../../shared/domain/api-key.ts';
import { ServiceError, toRetrySeconds } from '../../../shared/errors/service-error.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AdminAccessStore } from '../../../shared/redis/stores/admin-access-store.ts';
import { addressBlockOf } from '../../http/head-guards.ts';
import { contextOf } from '../../http/request-context.ts';
import { putNewest } from '../../../shared/domain/bounded-map.ts';
import type { AdminSessions } from './admin-session.ts';

/** docs/spec.md#tokens: failed tokens of an address before it is kept out. */
export const ADMIN_FAILURES_PER_MINUTE = 10;
const MINUTE_MS = 60_000;

/** Keeps out addresses that guess administration tokens. */
type AdminFailures = ReturnType<typeof createAdminFailures>;

export interface AdminFailuresDeps {
  store: AdminAccessStore;
  clock: Clock;
  /** Called once each time an address gets kept out. */
  onKeptOut: (req: Request, res: Response) => Promise<void>;
}

/** More addresses than this at once are a flood, and Redis still counts them. */
const ADDRESSES_MAX = 10_000;

/**
 * All ingresses count together in Redis. Each one remembers the addresses that are kept out, so that a valid token
 * costs no look-up and works while Redis is unavailable; wrong tokens are then counted by each ingress for itself.
 */
export function createAdminFailures({ store, clock, onKeptOut }: AdminFailuresDeps) {
  const keptOut = new Map<string, number>();
  /** Counted here while Redis is unavailable: when each failed, within the last minute. */
  const failedAt = new Map<string, number[]>();
  const addressOf = (req: Request) => addressBlockOf(req.ip);

  function refusal(waitMs: number): ServiceError {
    return new ServiceError(
      'rpm_exceeded',
      `More than ${ADMIN_FAILURES_PER_MINUTE} wrong administrator tokens per minute came from this address; wait as Retry-After says.`,
      { retryAfterSeconds: toRetrySeconds(waitMs) },
    );
  }

  /** Milliseconds until the address may try again, as the store says them; undefined: it may. */
  function countHere(address: string): number | undefined {
    const now = clock.now();
    const recent = (failedAt.get(address) ?? []).filter((at) => at > now - MINUTE_MS);
    const [oldest = now] = recent;
    if (recent.length >= ADMIN_FAILURES_PER_MINUTE) return oldest + MINUTE_MS - now;
    putNewest(failedAt, address, [...recent, now], ADDRESSES_MAX);
    return undefined;
  }

  return {
    /** Throws `rpm_exceeded` while the address is kept out, before its token is checked. */
    assertMayTry(req: Request): void {
      const address = addressOf(req);
      const waitMs = (keptOut.get(address) ?? 0) - clock.now();
      if (waitMs > 0) throw refusal(waitMs);
      keptOut.delete(address);
    },

    /** Counts a wrong token; throws `rpm_exceeded` if it was one too many. */
    async count(req: Request, res: Response): Promise<void> {
      const address = addressOf(req);
      const waitMs = await store.countFailure(contextOf(res).requestId, address).catch(() => countHere(address));
      if (waitMs === undefined) return;
      putNewest(keptOut, address, clock.now() + waitMs, ADDRESSES_MAX);
      await onKeptOut(req, res);
      throw refusal(waitMs);
    },
  };
}

export const BOARD_PATH = '/admin/queues';
export const SIGN_IN_PATH = '/admin/sign-in';

export const signInFor = (to: string) => `${SIGN_IN_PATH}?to=${encodeURIComponent(to)}`;

export type AdminAuthentication = ReturnType<typeof createAdminAuthentication>;

export interface AdminAuthenticationDeps {
  tokens: readonly AdminToken[];
  failures: AdminFailures;
  sessions: AdminSessions;
}

const READING = new Set(['GET', 'HEAD']);

/**
 * Throws for a call that a page of another origin made its browser send. `SameSite=Strict` keeps other sites from using
 * a session, but every port and subdomain of this host counts as the same site. Other clients send neither header.
 */
export function assertSameOrigin({ headers, host }: Request): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const isOwn = site === undefined ? origin === undefined || URL.parse(origin)?.host === host : site === 'same-origin';
  if (isOwn) return;
  throw new ServiceError('endpoint_not_allowed', 'A session changes things from the pages of this address only.');
}

/** Throws `missing_api_key`, `invalid_api_key` or `rpm_exceeded`. */
async function authenticate(
  findToken: (req: Request, res: Response, given: string) => Promise<AdminToken | undefined>,
  req: Request,
  res: Response,
): Promise<AdminToken> {
  const given = bearerTokenOf(req.headers.authorization);
  if (given === '') {
    throw new ServiceError(
      'missing_api_key',
      'No administrator token was sent; add the header `Authorization: Bearer <ADMIN_TOKEN>`.',
    );
  }
  const token = await findToken(req, res, given ?? '');
  if (token === undefined) {
    throw new ServiceError(
      'invalid_api_key',
      'The administrator token is neither ADMIN_TOKEN nor one of ADMIN_TOKENS.',
    );
  }
  return token;
}

function assertMayUse({ name, role }: AdminToken, { method }: Request): void {
  if (role === 'write' || READING.has(method)) return;
  const message = `The administrator token \`${name}\` may only read; use one with the role \`write\`.`;
  throw new ServiceError('endpoint_not_allowed', message);
}

export function createAdminAuthentication(deps: AdminAuthenticationDeps) {
  const { tokens, failures, sessions } = deps;

  /** Takes the same time for every token. Undefined: it is wrong. Throws `rpm_exceeded` after too many wrong ones. */
  async function findToken(req: Request, res: Response, given: string): Promise<AdminToken | undefined> {
    failures.assertMayTry(req);
    const [token] = tokens.filter((one) => isSameSecret(given, one.token));
    if (token === undefined) await failures.count(req, res);
    return token;
  }

  return {
    findToken,

    /** For the JSON interface: accepts only the token as a Bearer credential, so that no other site can use a session. */
    async requireToken(req: Request, res: Response, next: NextFunction): Promise<void> {
      const token = await authenticate(findToken, req, res);
      assertMayUse(token, req);
      contextOf(res).administrator = token;
      next();
    },

    /** For pages: accepts the token or a session; a browser without either is redirected to the sign-in form. */
    async requirePageAccess(req: Request, res: Response, next: NextFunction): Promise<void> {
      if (req.headers.authorization === undefined) {
        const token = await sessions.find(req);
        if (token !== undefined) {
          if (!READING.has(req.method)) assertSameOrigin(req);
          contextOf(res).administrator = token;
          next();
          return;
        }
        if (req.method === 'GET' && req.accepts('json', 'html') === 'html') {
          res.redirect(303, signInFor(req.originalUrl));
          return;
        }
      }
      contextOf(res).administrator = await authenticate(findToken, req, res);
      next();
    },
  };
}
