import { Router } from 'express';

import { parseCompletionsBody } from '../../../shared/contracts/parse-completions-body.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { assertScope, requireScope } from '../../middleware/require-scope.ts';
import { CHAT_BODY_RULES } from '../chat/route.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/**
 * `POST /chat/completions`: the official `openai` client works with `baseURL` alone (contract.md section 3). By
 * `stream` it stands for one of the two chat routes, and takes that one's scope and throttle.
 */
export function createChatCompletionsRoute({ authenticate, identify, respond }: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat/completions')
    .post(authenticate, requireScope('chat', 'chat.stream'), readJsonBody(CHAT_BODY_RULES), (req, res) => {
      const body = parseCompletionsBody(req.body);
      assertScope(res, body.stream ? 'chat.stream' : 'chat');
      return body.stream ? respond.stream(req, res, body) : respond.complete(req, res, body);
    })
    .all(identify, methodNotAllowed('POST'));
  return router;
}
