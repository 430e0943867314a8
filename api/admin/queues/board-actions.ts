import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import { contextOf } from '../../http/request-context.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import type { RecordChanges } from '../../http/serve-endpoints.ts';

/** What an operator may do on the board. The rest of what Bull Board can (add, edit, empty, delete) stays refused. */
const ACTIONS = [
  '/api/queues/pause',
  '/api/queues/resume',
  '/api/queues/:queueName/pause',
  '/api/queues/:queueName/resume',
  '/api/queues/:queueName/promote',
  '/api/queues/:queueName/:jobId/promote',
];
const RETRIES = ['/api/queues/:queueName/retry/failed', '/api/queues/:queueName/:jobId/retry'];

const readOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET' || req.method === 'HEAD') next();
  else methodNotAllowed('GET', 'HEAD')(req, res, next);
};

const assertMayWrite: RequestHandler = (_req, res, next) => {
  const { administrator } = contextOf(res);
  if (administrator?.role === 'write') next();
  else {
    throw new ServiceError(
      'endpoint_not_allowed',
      `The administrator token \`${administrator?.name ?? ''}\` may only read; use one with the role \`write\`.`,
    );
  }
};

/**
 * Lets through what reads, and the actions of `ACTIONS` for those who may write, each with its line in the audit log. A
 * chat request has been answered when its job has failed, so such a job is never run again.
 */
export function guardBoard(audit: RecordChanges, isLane: (queueName: string) => boolean): Router {
  const assertRetriable: RequestHandler = (req, _res, next) => {
    const { queueName } = req.params;
    if (typeof queueName !== 'string' || !isLane(queueName)) next();
    else {
      throw new ServiceError(
        'conflict',
        'The request of this job has ended and its caller was told so; a failed chat request is not run again from the board.',
      );
    }
  };
  const record: RequestHandler = async (req: Request, res: Response, next) => {
    const conclude = await audit.begin(req, res, undefined);
    res.once('finish', () => void conclude({ status: res.statusCode }));
    next('router');
  };
  const router = Router();
  router.put(ACTIONS, assertMayWrite, record);
  router.put(RETRIES, assertMayWrite, assertRetriable, record);
  router.use(readOnly);
  return router;
}
