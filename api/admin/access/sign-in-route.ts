import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { AdminSessions } from './admin-session.ts';
import { assertSameOrigin, BOARD_PATH, SIGN_IN_PATH, signInFor } from './authenticate-admin.ts';
import type { AdminAuthentication } from './authenticate-admin.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { readForm } from './admin-session.ts';
import { contextOf } from '../../http/request-context.ts';
import type { AdminAudit } from '../audit-log/admin-audit.ts';

const SIGN_OUT_PATH = '/admin/sign-out';

/** For the sign-in form: plain HTML, no script, nothing loaded from elsewhere. */
const SIGN_IN_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The page in `?to=`; undefined unless it is another page of the administration, so that no link leads away. */
function pageAfter({ query: { to } }: Request): string | undefined {
  const here = 'http://here.invalid';
  const url = typeof to === 'string' ? URL.parse(to, here) : null;
  if (url?.origin !== here || !url.pathname.startsWith('/admin/')) return undefined;
  return [SIGN_IN_PATH, SIGN_OUT_PATH].includes(url.pathname) ? undefined : url.pathname + url.search;
}

interface SignInPage {
  to: string | undefined;
  /** The fault, in words for the person at the form. */
  notice?: string | undefined;
  /** The token's name, if the browser is signed in. It contains no characters that are special in HTML. */
  signedInAs?: string | undefined;
}

function renderSignIn({ to, notice, signedInAs }: SignInPage): string {
  const alert = notice === undefined ? '' : `<p role="alert">${notice}</p>`;
  const session =
    signedInAs === undefined
      ? ''
      : `<p>You are signed in with the token <b>${signedInAs}</b>.</p>
<form method="post" action="${SIGN_OUT_PATH}"><button type="submit">Sign out</button></form>
`;
  const action = to === undefined ? SIGN_IN_PATH : signInFor(to);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parley administration</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
input, button { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .25rem 0 1rem }
[role=alert] { color: #b00020 }
</style>
</head>
<body>
<h1>Parley administration</h1>
${session}${alert}<form method="post" action="${action}">
<label for="token">Administrator token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button>
</form>
</body>
</html>
`;
}

function sendForm(res: Response, status: number, page: SignInPage): void {
  res.status(status).setHeader('Content-Security-Policy', SIGN_IN_POLICY).type('html').send(renderSignIn(page));
}

function tokenIn(body: unknown): string {
  const token: unknown = typeof body === 'object' && body !== null && 'token' in body ? body.token : undefined;
  return typeof token === 'string' ? token : '';
}

const assertFormType: RequestHandler = (req, _res, next) => {
  if (req.is('application/x-www-form-urlencoded') === false) {
    throw new ServiceError('unsupported_media_type', 'The form is sent as application/x-www-form-urlencoded.');
  }
  next();
};

export interface SignInDeps {
  findToken: AdminAuthentication['findToken'];
  sessions: AdminSessions;
  audit: AdminAudit;
}

/** `/admin/sign-in` turns the token into a session for the pages, and `/admin/sign-out` ends it. */
export function createAdminSignInRoute({ findToken, sessions, audit }: SignInDeps): Router {
  const router = Router();
  router
    .route(SIGN_IN_PATH)
    .get(async (req, res) => {
      const token = await sessions.find(req);
      sendForm(res, 200, { to: pageAfter(req), signedInAs: token?.name });
    })
    .post(assertFormType, readForm(), async (req, res) => {
      // A foreign page could use up the address's tries for wrong tokens.
      assertSameOrigin(req);
      const to = pageAfter(req);
      const token = await findToken(req, res, tokenIn(req.body)).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === 'rpm_exceeded') return error;
        throw error;
      });
      if (token instanceof ServiceError) {
        res.setHeader('Retry-After', token.retryAfterSeconds ?? 1);
        sendForm(res, 429, { to, notice: 'Too many wrong tokens came from this address; try again in a minute.' });
      } else if (token === undefined) {
        res.setHeader('WWW-Authenticate', 'Bearer');
        sendForm(res, 401, { to, notice: 'This is not the token of an administrator.' });
      } else {
        contextOf(res).administrator = token;
        sessions.start(req, res, token);
        await audit.note(req, res, 'sign_in');
        res.redirect(303, to ?? BOARD_PATH);
      }
    })
    .all(methodNotAllowed('GET', 'POST'));
  router
    .route(SIGN_OUT_PATH)
    .post(async (req, res) => {
      assertSameOrigin(req);
      const token = await sessions.find(req);
      await sessions.end(req, res);
      if (token !== undefined) {
        contextOf(res).administrator = token;
        await audit.note(req, res, 'sign_out');
      }
      res.redirect(303, SIGN_IN_PATH);
    })
    .all(methodNotAllowed('POST'));
  return router;
}
