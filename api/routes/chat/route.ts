import { Router } from 'express';
import type { RequestHandler } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import type { Respond } from './respond.ts';

export interface ChatRouteDeps {
  authenticate: RequestHandler;
  identify: RequestHandler;
  respond: Respond;
}

/** 100 messages of 16,000 code points, escaped (contract.md section 2). */
export const CHAT_BODY_RULES = { limitBytes: 20 * 1024 * 1024, family: 'chat', valuesMax: 100_000 } as const;

/** `POST /chat`: the complete answer as JSON (interface.md section 4.1), or 202 at once. */
export function createChatRoute({ authenticate, identify, respond }: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat')
    .post(authenticate, requireScope('chat'), readJsonBody(CHAT_BODY_RULES), (req, res) =>
      respond.complete(req, res, parseChatBody(req.body)),
    )
    .all(identify, methodNotAllowed('POST'));
  return router;
}
