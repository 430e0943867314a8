import type { ErrorRequestHandler } from 'express';

import { ServiceError } from '../../shared/errors/service-error.ts';
import { isMongoAway } from '../../shared/infra/mongo/mongo-faults.ts';

/** Names that ioredis gives to a server that is away. */
const REDIS_AWAY: ReadonlySet<string> = new Set(['MaxRetriesPerRequestError', 'ClusterAllFailedError']);

/** ioredis throws plain errors for these. */
const FAULT_MESSAGES = /^(Connection is closed|Command timed out|Stream isn't writeable|connect E|read E|write E)/;

/** What a Redis answers that is there and cannot serve: full, starting, failing over, stuck in a script. */
const REDIS_UNABLE = /^(-?OOM|LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|MISCONF|NOREPLICAS) /;

function isStoreFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ReplyError') return REDIS_UNABLE.test(error.message);
  return isMongoAway(error) || REDIS_AWAY.has(error.name) || FAULT_MESSAGES.test(error.message);
}

/** A store that is away or cannot serve is 503 (docs/spec/contract.md section 2); mount it before the handler that answers. */
export const storeFault: ErrorRequestHandler = (error: unknown, _req, _res, next) => {
  next(
    isStoreFault(error)
      ? new ServiceError('model_unavailable', 'A store does not answer at the moment; try again shortly.', {
          cause: error,
          retryAfterSeconds: 1,
        })
      : error,
  );
};
