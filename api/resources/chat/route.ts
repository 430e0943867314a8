import type { Router } from 'express';

import { parseChatBody } from '../../contract/parse-chat-body.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import type { Respond } from './respond.ts';

export interface ChatRouteDeps {
  serve: ServeEndpoints;
  respond: Respond;
}

/** `POST /chat`: the complete answer as JSON (docs/spec/interface.md section 4.1), or 202 at once. */
export function createChatRoute({ serve, respond }: ChatRouteDeps): Router {
  return serve({ createChat: (req, res) => respond.complete(req, res, parseChatBody(req.body)) });
}
