import { Router } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import { openForwarder } from '../../relay/forward.ts';
import { CHAT_BODY_RULES, headOf } from '../chat/route.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/** `POST /chat/stream`: the answer as Server-Sent Events (interface.md section 4.2). */
export function createChatStreamRoute({
  authenticate,
  identify,
  accept,
  hub,
  requestTimeoutMs,
}: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat/stream')
    .post(authenticate, requireScope('chat.stream'), readJsonBody(CHAT_BODY_RULES), async (req, res) => {
      const body = parseChatBody(req.body);
      const { envelope, relay } = await accept(
        res,
        { endpoint: 'chat.stream', stream: true },
        body,
        (shard, requestId) => openForwarder(hub, res, { shard, requestId, timeoutMs: requestTimeoutMs }),
      );
      await relay.forward(headOf(envelope));
    })
    .all(identify, methodNotAllowed('POST'));
  return router;
}
