import { setImmediate } from 'node:timers/promises';

import type { Request, Response } from 'express';

import { SENT } from '../contract/endpoint.ts';
import type { Sent } from '../contract/endpoint.ts';
import type { ParsedChatBody } from './chat-body.ts';
import type { Accept } from './accept.ts';
import type { ChatRoute } from '../../shared/contracts/jobs.ts';
import type { RecordStore } from '../../shared/requests/record-store.ts';
import { principalOf } from '../http/request-context.ts';
import { idempotencyKeyOf, tryOf, keepsNothing } from '../limits/request-terms.ts';
import { openCollector } from '../relay/collect.ts';
import { dropUnread, untilDrained } from '../relay/paced-writer.ts';
import { DRAIN_MS, openForwarder, SSE_HEADERS } from '../relay/forward.ts';
import type { Forwarder, RelayTimes } from '../relay/forward.ts';
import type { RelayHub } from '../relay/hub.ts';
import { noLongerKept } from './accept.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { hasAllEvents, lastEventId, reached } from './resume.ts';

export interface RespondDeps {
  accept: Accept;
  hub: RelayHub;
  records: Pick<RecordStore, 'place' | 'find'>;
  clock: Clock;
  requestTimeoutMs: number;
  /** Aborts when this ingress can no longer wait for answers. */
  stopping: AbortSignal;
  relayTimes: RelayTimes;
}

export type Respond = ReturnType<typeof createRespond>;

/** `Prefer: respond-async` (RFC 7240): the caller does not wait. */
function wantsAsync(req: Request): boolean {
  return (req.get('Prefer') ?? '').split(',').some((preference) => /^\s*respond-async\s*(;|$)/i.test(preference));
}

/** Names of an earlier call or try whose request this call joins. */
const earlierOf = (req: Request) => ({ idempotencyKey: idempotencyKeyOf(req), tries: tryOf(req) });

const NO_RELAY = { close: () => undefined, abandon: () => undefined };

/** 202 at once; the answer is looked up or streamed later. */
async function answerLater(accept: Accept, req: Request, res: Response, body: ParsedChatBody): Promise<Sent> {
  const route = { endpoint: 'chat', stream: false, async: true, idempotencyKey: idempotencyKeyOf(req) } as const;
  const { head, replayed } = await accept(res, route, body, () => NO_RELAY);
  if (replayed) res.setHeader('Idempotent-Replayed', 'true');
  res.setHeader('Location', `${req.baseUrl}/chat/${head.requestId}`);
  res.setHeader('Preference-Applied', 'respond-async');
  res.status(202).json({ id: head.requestId, object: 'chat.request', created_at: head.created, status: 'queued' });
  return SENT;
}

/** Writes no faster than the client reads. False: it has left, or reads nothing. */
async function writePieces(res: Response, pieces: Iterable<string>, drainMs: number): Promise<boolean> {
  for (const piece of pieces) {
    if (res.destroyed || (!res.write(piece) && !(await untilDrained(res, drainMs)))) return false;
    await setImmediate();
  }
  return true;
}

/** Answers a valid chat body. The chat routes differ only in the bodies they accept. */
export function createRespond(deps: RespondDeps) {
  const { accept, hub, records, clock, requestTimeoutMs: timeoutMs, stopping, relayTimes } = deps;

  /** Whether nothing is left to read after this position of a joined stream. If so, or on error, closes the relay. */
  async function isReadWhole(res: Response, requestId: string, position: number, relay: Forwarder): Promise<boolean> {
    const look = async () => {
      const record = await records.find(principalOf(res), requestId);
      if (record === undefined) throw noLongerKept();
      return record;
    };
    try {
      const isWhole = hasAllEvents(await reached(position, look, clock), position);
      if (isWhole) relay.close();
      return isWhole;
    } catch (error) {
      relay.close();
      throw error;
    }
  }

  return {
    /** The complete answer as JSON. */
    async complete(req: Request, res: Response, body: ParsedChatBody, endpoint: ChatRoute = 'chat'): Promise<Sent> {
      // If nothing is kept, nobody could read the answer later. RFC 7240 lets a server ignore a preference.
      if (endpoint === 'chat' && wantsAsync(req) && !keepsNothing(principalOf(res)))
        return answerLater(accept, req, res, body);
      const route = { endpoint, stream: false, ...earlierOf(req) };
      const { head, relay, replayed } = await accept(res, route, body, (shard, requestId, existing) =>
        openCollector(hub, res, { shard, requestId, existing, timeoutMs, stopping, form: body.form }),
      );
      if (replayed) res.setHeader('Idempotent-Replayed', 'true');
      const json = await relay.answer(head);
      const type = { 'Content-Type': 'application/json; charset=utf-8' };
      if (typeof json === 'string') {
        res.writeHead(200, { ...type, 'Content-Length': Buffer.byteLength(json) });
        res.end(json);
      } else {
        res.writeHead(200, type);
        if (!(await writePieces(res, json, relayTimes.drainMs ?? DRAIN_MS))) return SENT;
        res.end();
      }
      dropUnread(res, relayTimes.drainMs ?? DRAIN_MS);
      return SENT;
    },

    /**
     * The answer as Server-Sent Events. An SSE client that was cut off repeats the call with `Last-Event-ID`; under an
     * `Idempotency-Key` it gets the rest, as from `GET /chat/stream/{request_id}`.
     */
    async stream(req: Request, res: Response, body: ParsedChatBody): Promise<Sent> {
      const { idempotencyKey, tries } = earlierOf(req);
      // Without an Idempotency-Key every call is a new request, which has no earlier events.
      const position = idempotencyKey === undefined ? 0 : (lastEventId(req.get('Last-Event-ID')) ?? 0);
      const route = { endpoint: 'chat.stream', stream: true, idempotencyKey, tries } as const;
      const { head, relay, replayed } = await accept(res, route, body, (shard, requestId, existing) =>
        openForwarder(hub, res, {
          shard,
          requestId,
          existing,
          fromSeq: existing ? position + 1 : 1,
          timeoutMs,
          stopping,
          form: body.form,
          ...relayTimes,
          place: () => records.place(principalOf(res), requestId),
        }),
      );
      if (replayed) res.setHeader('Idempotent-Replayed', 'true');
      // An empty stream: clients that repeat a POST would take a 204 for a failure and keep asking.
      if (replayed && position > 0 && (await isReadWhole(res, head.requestId, position, relay)))
        res.writeHead(200, SSE_HEADERS).end();
      else await relay.forward(head);
      return SENT;
    },
  };
}
