import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import { parseChatBody } from '../../../shared/contracts/parse-chat-body.ts';
import type { Accept } from '../../admission/accept.ts';
import { idempotencyKeyOf } from '../../admission/idempotency.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { readJsonBody } from '../../middleware/read-json-body.ts';
import { requireScope } from '../../middleware/require-scope.ts';
import { openCollector } from '../../relay/collect.ts';
import type { RelayTimes } from '../../relay/forward.ts';
import type { RelayHub } from '../../relay/hub.ts';

export interface ChatRouteDeps {
  authenticate: RequestHandler;
  identify: RequestHandler;
  accept: Accept;
  hub: RelayHub;
  requestTimeoutMs: number;
  relayTimes: RelayTimes;
}

/** 100 messages of 16,000 code points, escaped (contract.md section 2). */
export const CHAT_BODY_RULES = { limitBytes: 20 * 1024 * 1024, family: 'chat' } as const;

/** `Prefer: respond-async` (RFC 7240): the caller does not wait. */
function wantsAsync(req: Request): boolean {
  return (req.get('Prefer') ?? '').split(',').some((preference) => /^\s*respond-async\s*(;|$)/i.test(preference));
}

/** Sends a complete answer; its text is JSON already. */
export function sendAnswer(res: Response, json: string): void {
  res.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(json) });
  res.end(json);
}

const NO_RELAY = { close: () => undefined };

/** `POST /chat`: the complete answer as JSON (interface.md section 4.1), or 202 at once. */
export function createChatRoute({ authenticate, identify, accept, hub, requestTimeoutMs }: ChatRouteDeps): Router {
  const router = Router();
  router
    .route('/chat')
    .post(authenticate, requireScope('chat'), readJsonBody(CHAT_BODY_RULES), async (req, res) => {
      const body = parseChatBody(req.body);
      const route = { endpoint: 'chat', stream: false, idempotencyKey: idempotencyKeyOf(req) } as const;
      if (wantsAsync(req)) {
        const { head } = await accept(res, { ...route, async: true }, body, () => NO_RELAY);
        res.setHeader('Location', `${req.baseUrl}/chat/${head.requestId}`);
        res.setHeader('Preference-Applied', 'respond-async');
        res
          .status(202)
          .json({ id: head.requestId, object: 'chat.request', status: 'queued', created_at: head.created });
        return;
      }
      const { head, relay, replayed } = await accept(res, route, body, (shard, requestId, existing) =>
        openCollector(hub, res, { shard, requestId, existing, timeoutMs: requestTimeoutMs }),
      );
      if (replayed) res.setHeader('Idempotent-Replayed', 'true');
      sendAnswer(res, await relay.answer(head));
    })
    .all(identify, methodNotAllowed('POST'));
  return router;
}
