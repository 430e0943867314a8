import { Router } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import { idempotencyKeyOf } from '../../admission/idempotency.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import { openForwarder } from '../../relay/forward.ts';
import { CHAT_BODY_RULES } from '../chat/route.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/** `POST /chat/stream`: the answer as Server-Sent Events (interface.md section 4.2). */
export function createChatStreamRoute({
  authenticate,
  identify,
  accept,
  hub,
  requestTimeoutMs,
  relayTimes,
}: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat/stream')
    .post(authenticate, requireScope('chat.stream'), readJsonBody(CHAT_BODY_RULES), async (req, res) => {
      const body = parseChatBody(req.body);
      const route = { endpoint: 'chat.stream', stream: true, idempotencyKey: idempotencyKeyOf(req) } as const;
      const { head, relay, replayed } = await accept(res, route, body, (shard, requestId, existing) =>
        openForwarder(hub, res, { shard, requestId, existing, timeoutMs: requestTimeoutMs, ...relayTimes }),
      );
      if (replayed) res.setHeader('Idempotent-Replayed', 'true');
      await relay.forward(head);
    })
    .all(identify, methodNotAllowed('POST'));
  return router;
}
