import type { Router } from 'express';

import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { RecordStore, RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { answerHead } from '../../relay/answer.ts';
import { openForwarder } from '../../relay/forward.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import type { RelayHub } from '../../relay/hub.ts';
import { findRequest } from '../chat-requests/find-request.ts';
import type { FindRequestDeps } from '../chat-requests/find-request.ts';
import { pathParam } from '../../contract/path-id.ts';
import { parsePosition } from './schema.ts';

export interface ResumeDeps extends FindRequestDeps {
  serve: ServeEndpoints;
  records: Pick<RecordStore, 'attach'>;
  hub: RelayHub;
  requestTimeoutMs: number;
  relayTimes: RelayTimes;
}

function assertReached(position: number, { sentSeq }: RequestRecord): void {
  if (position <= sentSeq) return;
  throw new ServiceError(
    'invalid_request',
    `The stream has ${sentSeq} events so far; it cannot go on after event ${position}.`,
  );
}

/**
 * `GET /chat/stream/{request_id}`: the same bytes again, from any event, on any ingress
 * (docs/spec/contract.md section 3).
 */
export function createResumeRoute(deps: ResumeDeps): Router {
  const { serve, records, hub, requestTimeoutMs, relayTimes } = deps;
  return serve({
    resumeChatStream: async (req, res) => {
      const principal = principalOf(res);
      const { shard } = principal;
      const requestId = pathParam(req, 'requestId');
      const position = parsePosition(req.query, req.get('Last-Event-ID'));
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
    },
  });
}
