import { Router } from 'express';
import type { RequestHandler } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import type { Accept } from '../../admission/accept.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import type { AnswerHead } from '../../relay/answer.ts';
import { openCollector } from '../../relay/collect.ts';
import type { RelayHub } from '../../relay/hub.ts';

export interface ChatRouteDeps {
  authenticate: RequestHandler;
  identify: RequestHandler;
  accept: Accept;
  hub: RelayHub;
  requestTimeoutMs: number;
}

/** 100 messages of 16,000 code points, escaped (contract.md section 2). */
export const CHAT_BODY_RULES = { limitBytes: 20 * 1024 * 1024, family: 'chat' } as const;

export function headOf({ requestId, acceptedAt, tier, request }: RequestEnvelope): AnswerHead {
  return {
    requestId,
    created: Math.floor(acceptedAt / 1000),
    model: tier,
    ...(request.metadataJson === undefined ? {} : { metadataJson: request.metadataJson }),
  };
}

/** `POST /chat`: the complete answer as JSON (interface.md section 4.1). */
export function createChatRoute({ authenticate, identify, accept, hub, requestTimeoutMs }: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat')
    .post(authenticate, requireScope('chat'), readJsonBody(CHAT_BODY_RULES), async (req, res) => {
      const body = parseChatBody(req.body);
      const { envelope, relay } = await accept(res, { endpoint: 'chat', stream: false }, body, (shard, requestId) =>
        openCollector(hub, shard, requestId, res, requestTimeoutMs),
      );
      const json = await relay.answer(headOf(envelope));
      res.writeHead(200, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': Buffer.byteLength(json),
      });
      res.end(json);
    })
    .all(identify, methodNotAllowed('POST'));
  return router;
}
