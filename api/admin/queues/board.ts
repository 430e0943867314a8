import { createBullBoard } from '@bull-board/api';
import { ExpressAdapter } from '@bull-board/express';
import { Router } from 'express';
import type { Express, RequestHandler } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import { SIGN_IN_PATH } from '../../http/authenticate-admin.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import type { BullQueue } from './queues-endpoints.ts';
import { RedactedQueue } from './redacted-queue.ts';

export const BOARD_PATH = '/admin/queues';

/** The board's page asks a font server by default: the browser is told to load nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  // The page and its components carry style attributes.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const setPolicy: RequestHandler = (_req, res, next) => {
  res.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  next();
};

/** Refuses every method that could change something, whatever the board may add. */
const readOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET' || req.method === 'HEAD') next();
  else methodNotAllowed('GET', 'HEAD')(req, res, next);
};

/** The board decodes these parameters a second time and fails on a malformed escape. */
const checkQuery: RequestHandler = (req, _res, next) => {
  for (const name of ['activeQueue', 'queueName']) {
    const value = req.query[name];
    if (value === undefined) continue;
    try {
      if (typeof value === 'string') decodeURIComponent(value);
      else throw new TypeError('given twice');
    } catch (cause) {
      throw new ServiceError('invalid_request', `\`${name}\` must be the name of a queue.`, { param: name, cause });
    }
  }
  next();
};

/**
 * Bull Board, to be mounted at `/admin/queues` behind the token: read-only and redacted
 * (docs/spec/contract.md section 7).
 */
export function createQueuesBoard(queues: readonly BullQueue[]): Router {
  const serverAdapter = new ExpressAdapter();
  serverAdapter.setBasePath(BOARD_PATH);
  createBullBoard({
    queues: queues.map((queue) => new RedactedQueue(queue)),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Parley queues', miscLinks: [{ text: 'Sign out', url: SIGN_IN_PATH }] } },
  });
  // The adapter declares `any`; it is the Express app it made.
  const board = serverAdapter.getRouter() as Express;
  board.disable('x-powered-by');
  const router = Router();
  router.use(setPolicy, readOnly, checkQuery, board);
  return router;
}
