import type { Router } from 'express';

import { parseCompletionsBody } from '../../contract/parse-completions-body.ts';
import { assertScope } from '../../http/require-scope.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/**
 * `POST /chat/completions`: the official `openai` client works with `baseURL` alone (docs/spec/contract.md section 3).
 * By `stream` it stands for one of the two chat routes, and takes that one's scope and throttle.
 */
export function createChatCompletionsRoute({ serve, respond }: ChatRouteDeps): Router {
  return serve({
    createChatCompletion: (req, res) => {
      const body = parseCompletionsBody(req.body);
      assertScope(res, body.stream ? 'chat.stream' : 'chat');
      return body.stream ? respond.stream(req, res, body) : respond.complete(req, res, body);
    },
  });
}
