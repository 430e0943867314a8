import { Router } from 'express';
import type { Request, RequestHandler } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { RecordStore, RequestRecord } from '../../../shared/infra/redis/record-store.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { principalOf } from '../../middleware/request-context.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import { answerHead } from '../../relay/answer.ts';
import { openForwarder } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import type { RelayHub } from '../../relay/hub.ts';
import { findRequest } from '../chat-requests/find-request.ts';
import type { FindRequestDeps } from '../chat-requests/find-request.ts';

export interface ResumeDeps extends FindRequestDeps {
  authenticate: RequestHandler;
  identify: RequestHandler;
  countLookup: RequestHandler;
  records: Pick<RecordStore, 'attach'>;
  hub: RelayHub;
  requestTimeoutMs: number;
  relayTimes: RelayTimes;
}

/** The number of the last event the client has; 0 where it names none. */
function positionOf(req: Request): number {
  const header = req.get('Last-Event-ID');
  const query = req.query['starting_after'];
  if (header !== undefined && query !== undefined) {
    throw new ServiceError('invalid_request', 'Send either the header Last-Event-ID or starting_after, not both.', {
      param: 'starting_after',
    });
  }
  const value = header ?? query;
  if (value === undefined) return 0;
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value);
  const param = header === undefined ? 'starting_after' : 'Last-Event-ID';
  throw new ServiceError('invalid_request', `${param} must be the number of an event: a whole number from 0.`, {
    param,
  });
}

function assertReached(position: number, { sentSeq }: RequestRecord): void {
  if (position <= sentSeq) return;
  throw new ServiceError(
    'invalid_request',
    `The stream has ${sentSeq} events so far; it cannot go on after event ${position}.`,
  );
}

/** `GET /chat/stream/{request_id}`: the same bytes again, from any event, on any ingress (contract.md section 3). */
export function createResumeRoute(deps: ResumeDeps): Router {
  const { authenticate, identify, countLookup, records, hub, requestTimeoutMs, relayTimes } = deps;
  const router = Router();
  router
    .route('/chat/stream/:requestId')
    .get(authenticate, requireScope('chat.stream'), countLookup, async (req, res) => {
      const principal = principalOf(res);
      const { shard } = principal;
      const { requestId } = req.params;
      const position = positionOf(req);
      await hub.ensureShard(shard);
      const channel = hub.channelOf(shard);
      const record = await findRequest(deps, principal, requestId, () => records.attach(principal, requestId, channel));
      assertReached(position, record);
      if (record.state === 'done' && position === record.sentSeq) {
        res.status(204).end();
        return;
      }
      const options = {
        shard,
        requestId,
        existing: true,
        fromSeq: position + 1,
        timeoutMs: requestTimeoutMs,
        ...relayTimes,
      };
      await openForwarder(hub, res, options).forward(answerHead(record));
    })
    .all(identify, methodNotAllowed('GET'));
  return router;
}
