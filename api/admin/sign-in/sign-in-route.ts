import express, { Router } from 'express';
import type { RequestHandler, Response } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import { SIGN_IN_PATH } from '../../http/authenticate-admin.ts';
import type { AdminAuthentication } from '../../http/authenticate-admin.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { BOARD_PATH } from '../queues/board.ts';

/** The sign-in form: plain HTML, no script, nothing from elsewhere. */
const SIGN_IN_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

function renderSignIn({ refused }: { refused: boolean }): string {
  const notice = refused ? '<p role="alert">This is not the administrator token.</p>' : '';
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
${notice}<form method="post" action="/admin/sign-in">
<label for="token">Administrator token (ADMIN_TOKEN)</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button>
</form>
</body>
</html>
`;
}

/** The form has one short field, and anyone can send it. */
const FORM_BYTES_MAX = 4_096;

function sendForm(res: Response, status: number): void {
  res
    .status(status)
    .setHeader('Content-Security-Policy', SIGN_IN_POLICY)
    .type('html')
    .send(renderSignIn({ refused: status !== 200 }));
}

function tokenIn(body: unknown): string {
  const token: unknown = typeof body === 'object' && body !== null && 'token' in body ? body.token : undefined;
  return typeof token === 'string' ? token : '';
}

/** Reads the form into `req.body`. */
function readForm(): RequestHandler {
  const read: RequestHandler = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  return (req, res, next) => {
    if (req.is('application/x-www-form-urlencoded') === false) {
      throw new ServiceError('unsupported_media_type', 'The form is sent as application/x-www-form-urlencoded.');
    }
    read(req, res, (cause?: unknown) => {
      if (cause === undefined) next();
      else next(new ServiceError('invalid_request', 'The form could not be read.', { cause }));
    });
  };
}

/** `/admin/sign-in`: turns the token into a session for the pages. */
export function createAdminSignInRoute({ isToken, startSession }: AdminAuthentication): Router {
  const router = Router();
  router
    .route(SIGN_IN_PATH)
    .get((_req, res) => {
      sendForm(res, 200);
    })
    .post(readForm(), (req, res) => {
      if (!isToken(tokenIn(req.body))) {
        sendForm(res, 401);
        return;
      }
      startSession(req, res);
      res.redirect(303, BOARD_PATH);
    })
    .all(methodNotAllowed('GET', 'POST'));
  return router;
}
