import { createHmac, randomBytes } from 'node:crypto';

import express from 'express';
import type { Request, RequestHandler, Response } from 'express';

import type { AdminToken } from '../../../shared/config/secret-settings.ts';
import { isSameSecret } from '../../../shared/domain/api-key.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AdminAccessStore } from '../../../shared/redis/stores/admin-access-store.ts';

const COOKIE = 'parley_admin';
const COOKIE_OPTIONS = { path: '/admin', httpOnly: true, sameSite: 'strict' } as const;
const SESSION_SECONDS = 12 * 60 * 60;
const NONCE_BYTES = 16;
const FORM = /^(\d{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})$/;

/** Browser sessions. The cookie holds no token, only an expiry, a random name and their HMAC under the token. */
export type AdminSessions = ReturnType<typeof createAdminSessions>;

export interface AdminSessionsDeps {
  tokens: readonly AdminToken[];
  store: AdminAccessStore;
  clock: Clock;
}

interface Session {
  nonce: string;
  leftMs: number;
  token: AdminToken;
}

function sign({ token }: AdminToken, expiry: string, nonce: string): string {
  return createHmac('sha256', token).update(`admin session ${nonce} until ${expiry}`).digest('hex');
}

export function createAdminSessions({ tokens, store, clock }: AdminSessionsDeps) {
  function read(req: Request): Session | undefined {
    const cookie = new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]*)`).exec(req.headers.cookie ?? '')?.[1];
    const [, expiry, nonce, signature] = FORM.exec(cookie ?? '') ?? [];
    if (expiry === undefined || nonce === undefined || signature === undefined) return undefined;
    const token = tokens.find((one) => isSameSecret(signature, sign(one, expiry, nonce)));
    const leftMs = Number(expiry) * 1000 - clock.now();
    return token === undefined || leftMs <= 0 ? undefined : { nonce, leftMs, token };
  }

  return {
    start(req: Request, res: Response, token: AdminToken): void {
      const expiry = String(Math.floor(clock.now() / 1000) + SESSION_SECONDS);
      const nonce = randomBytes(NONCE_BYTES).toString('hex');
      const value = `${expiry}.${nonce}.${sign(token, expiry, nonce)}`;
      res.cookie(COOKIE, value, { ...COOKIE_OPTIONS, secure: req.secure, maxAge: SESSION_SECONDS * 1000 });
    },

    /** The token of the session. Undefined if the session was ended or has expired, or its token is no longer listed. */
    async find(req: Request): Promise<AdminToken | undefined> {
      const session = read(req);
      if (session === undefined || (await store.isEnded(session.nonce))) return undefined;
      return session.token;
    },

    /** Ends the session everywhere, including copies of the cookie. */
    async end(req: Request, res: Response): Promise<void> {
      const session = read(req);
      if (session !== undefined) await store.endSession(session.nonce, session.leftMs);
      res.clearCookie(COOKIE, { ...COOKIE_OPTIONS, secure: req.secure });
    },
  };
}

/** This service's forms have one short field, and anyone can send them. */
const FORM_BYTES_MAX = 4_096;
const FORM_MS = 20_000;

/** Reads a page's form into `req.body`; an unreadable form gets 400 `invalid_request`. */
export function readForm(): RequestHandler {
  const read: RequestHandler = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  return (req, res, next) => {
    const late = setTimeout(() => req.destroy(), FORM_MS).unref();
    read(req, res, (cause?: unknown) => {
      clearTimeout(late);
      if (cause === undefined) next();
      else next(new ServiceError('invalid_request', 'The form could not be read.', { cause }));
    });
  };
}
