import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { ERRORS } from '../../../shared/errors/codes.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { contextOf } from '../../http/request-context.ts';
import type { RecordChanges } from '../../http/serve-endpoints.ts';
import type { FailedFilter } from '../../../shared/mongo/requests/failed-intents.ts';
import type { ReplayFailed, ReplayReport } from '../requests/replay-failed.ts';
import { SKIP_REASONS } from '../requests/replay-rules.ts';

/** Actions that an operator has on the board. Bull Board's other actions (add, edit, empty, delete) are refused. */
const ACTIONS = [
  '/api/queues/pause',
  '/api/queues/resume',
  '/api/queues/:queueName/pause',
  '/api/queues/:queueName/resume',
  '/api/queues/:queueName/promote',
  '/api/queues/:queueName/:jobId/promote',
];
const RETRIES = ['/api/queues/:queueName/retry/failed', '/api/queues/:queueName/:jobId/retry'];

/** The board's own paths have words of small letters where an id would stand, as in `clean/completed`; no job's id is one. */
const WORD = /^[a-z]+$/;

const readOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET' || req.method === 'HEAD') {
    next();
    return;
  }
  res.setHeader('Allow', 'GET, HEAD');
  throw new ServiceError(
    'method_not_allowed',
    'The board pauses, resumes, promotes and retries; it adds, edits and deletes no job, because the service does that itself.',
  );
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

/** The error that says why nothing is run again. */
function notReplayed({ requests }: Pick<ReplayReport, 'requests'>): ServiceError {
  const outcome = requests[0]?.outcome;
  const reason = outcome?.kind === 'skipped' ? SKIP_REASONS[outcome.reason] : 'No failed request can be replayed.';
  return new ServiceError('conflict', `A job of a request that has ended is not run again. ${reason}`);
}

/** Requests per page of a replay, and its maximum number of pages. */
const PAGE = 500;
const PAGES_MAX = 10;

export interface GuardBoardDeps {
  audit: RecordChanges;
  /** The shard of a chat queue; undefined: the queue holds no chat requests. */
  shardOf: (queueName: string) => number | undefined;
  replayFailed: ReplayFailed;
}

/**
 * Lets reads through, and the actions of `ACTIONS` for tokens that may write, each with a line in the audit log. Once a
 * job of a chat request has failed, the request has been answered, so BullMQ never runs the job again: the request is
 * replayed.
 */
export function guardBoard({ audit, shardOf, replayFailed }: GuardBoardDeps): Router {
  /** Replays everything that failed in the queue's shard, or a single request. */
  async function replayAll(filter: FailedFilter): Promise<Pick<ReplayReport, 'requests'>> {
    const requests: ReplayReport['requests'] = [];
    let after: ReplayReport['next'];
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const report = await replayFailed({ filter, after, limit: PAGE, isDryRun: false });
      requests.push(...report.requests);
      after = report.next;
      if (after === undefined) break;
    }
    return { requests };
  }

  const replay: RequestHandler = async (req: Request, res: Response, next) => {
    const { queueName, jobId } = req.params;
    const shard = typeof queueName === 'string' ? shardOf(queueName) : undefined;
    if (shard === undefined) {
      next();
      return;
    }
    const conclude = await audit.begin(req, res, undefined);
    const report = await replayAll(typeof jobId === 'string' ? { requestIds: [jobId] } : { shard });
    const isReplayed = report.requests.some(({ outcome }) => outcome.kind === 'replayed');
    await conclude({ status: isReplayed ? 204 : ERRORS.conflict.status });
    if (!isReplayed) throw notReplayed(report);
    res.status(204).end();
  };
  const record: RequestHandler = async (req: Request, res: Response, next) => {
    const conclude = await audit.begin(req, res, undefined);
    res.once('finish', () => void conclude({ status: res.statusCode }));
    next('router');
  };
  const router = Router();
  router.param('jobId', (_req, _res, next, id: string) => {
    next(WORD.test(id) ? 'route' : undefined);
  });
  router.put(ACTIONS, assertMayWrite, record);
  router.put(RETRIES, assertMayWrite, replay, record);
  router.use(readOnly);
  return router;
}
