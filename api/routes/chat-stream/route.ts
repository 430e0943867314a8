import { Router } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import { CHAT_BODY_RULES } from '../chat/route.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/** `POST /chat/stream`: the answer as Server-Sent Events (interface.md section 4.2). */
export function createChatStreamRoute({ authenticate, identify, respond }: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat/stream')
    .post(authenticate, requireScope('chat.stream'), readJsonBody(CHAT_BODY_RULES), (req, res) =>
      respond.stream(req, res, parseChatBody(req.body)),
    )
    .all(identify, methodNotAllowed('POST'));
  return router;
}
