import type { Router } from 'express';

import { parseChatBody } from '../../contract/parse-chat-body.ts';
import type { ChatRouteDeps } from '../chat/route.ts';

/** `POST /chat/stream`: the answer as Server-Sent Events (docs/spec/interface.md section 4.2). */
export function createChatStreamRoute({ serve, respond }: ChatRouteDeps): Router {
  return serve({ streamChat: (req, res) => respond.stream(req, res, parseChatBody(req.body)) });
}
