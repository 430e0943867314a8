import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

import type { Request, RequestHandler, Response } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

const COOKIE = 'parley_admin';
const SESSION_SECONDS = 12 * 60 * 60;
export const SIGN_IN_PATH = '/admin/sign-in';

export interface AdminAuthentication {
  /** Compares in constant time. */
  isToken: (value: string) => boolean;
  /** For the JSON interface: the token as a Bearer credential and nothing else, so no other site can use a session. */
  requireToken: RequestHandler;
  /** For pages: the token or a session; a browser without either is sent to the sign-in form. */
  requirePageAccess: RequestHandler;
  /** Sets the session cookie. It holds no token: an expiry and its HMAC, worthless after that time. */
  startSession: (req: Request, res: Response) => void;
}

/** Digests have one length, so the comparison tells nothing about the token's. */
function equal(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

function cookieOf(req: Request): string | undefined {
  return new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]*)`).exec(req.headers.cookie ?? '')?.[1];
}

export function createAdminAuthentication(token: string, clock: Clock): AdminAuthentication {
  const sign = (expiry: string) => createHmac('sha256', token).update(`admin session until ${expiry}`).digest('hex');
  const isToken = (value: string) => equal(value, token);

  /** Throws `missing_api_key` or `invalid_api_key`. */
  function assertToken(req: Request): void {
    const header = req.headers.authorization?.trim() ?? '';
    if (header === '' || /^bearer$/i.test(header)) {
      throw new ServiceError(
        'missing_api_key',
        'No administrator token was sent; add the header `Authorization: Bearer <ADMIN_TOKEN>`.',
      );
    }
    const given = /^bearer +(\S+)$/i.exec(header)?.[1];
    if (given === undefined || !isToken(given)) {
      throw new ServiceError('invalid_api_key', 'The administrator token is not the one in ADMIN_TOKEN.');
    }
  }

  function hasSession(req: Request): boolean {
    const match = /^(\d{1,12})\.([0-9a-f]{64})$/.exec(cookieOf(req) ?? '');
    if (match === null) return false;
    const [, expiry = '', signature = ''] = match;
    return equal(signature, sign(expiry)) && Number(expiry) * 1000 > clock.now();
  }

  return {
    isToken,

    requireToken(req, _res, next) {
      assertToken(req);
      next();
    },

    requirePageAccess(req, res, next) {
      if (req.headers.authorization === undefined) {
        if (hasSession(req)) {
          next();
          return;
        }
        if (req.method === 'GET' && req.accepts('json', 'html') === 'html') {
          res.redirect(303, SIGN_IN_PATH);
          return;
        }
      }
      assertToken(req);
      next();
    },

    startSession(req, res) {
      const expiry = String(Math.floor(clock.now() / 1000) + SESSION_SECONDS);
      res.cookie(COOKIE, `${expiry}.${sign(expiry)}`, {
        path: '/admin',
        httpOnly: true,
        sameSite: 'strict',
        secure: req.secure,
        maxAge: SESSION_SECONDS * 1000,
      });
    },
  };
}
