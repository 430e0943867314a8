import type { Request, Response } from 'express';

import { tenantFields } from '../../shared/contracts/tenant-fields.ts';
import type { ChatRoute } from '../../shared/contracts/jobs.ts';
import { defineEndpoint, json, SENT } from '../contract/endpoint.ts';
import type { Answer, BodyRule, Sent } from '../contract/endpoint.ts';
import { constant, id, named, object, time } from '../contract/json-schema.ts';
import { chatStreamWireSchema, chatWireSchema, parseChatBody, parseChatStreamBody } from './chat-body.ts';
import type { ParsedChatBody } from './chat-body.ts';
import { completionsWireSchema, parseCompletionsBody } from './completions-body.ts';
import {
  chunkSchema,
  COMPLETION_EXAMPLE,
  COMPLETIONS_STREAM_EXAMPLE,
  COMPLETIONS_STREAM_TEXT,
  completionsChunkSchema,
  completionSchema,
  STREAM_EXAMPLE,
  STREAM_TEXT,
} from './completion-schemas.ts';
import { noLongerKept } from './accept.ts';
import type { Accept, Accepted } from './accept.ts';
import { hasAllEvents, lastEventId, reached } from './resume.ts';
import { assertScope } from '../http/authenticate.ts';
import { principalOf } from '../http/request-context.ts';
import { idempotencyKeyOf, tryOf, keepsNothing, wantsAsync } from '../http/request-terms.ts';
import type { RecordStore } from '../../shared/requests/record-store.ts';
import { openCollector, DRAIN_MS, openForwarder, SSE_HEADERS } from '../relay/answer.ts';
import type { Forwarder, RelayTimes } from '../relay/answer.ts';
import { sendJson } from '../relay/paced-writer.ts';
import type { RelayHub } from '../relay/hub.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

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

type Respond = ReturnType<typeof createRespond>;

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

/** Tells whether nothing is left to read behind a position of a joined stream. If so, or on error, closes the relay. */
async function isReadWhole(
  { records, clock }: RespondDeps,
  res: Response,
  requestId: string,
  position: number,
  relay: Forwarder,
): Promise<boolean> {
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

async function sendComplete(
  { relayTimes: { drainMs = DRAIN_MS } }: RespondDeps,
  res: Response,
  accepted: Promise<Accepted<ReturnType<typeof openCollector>>>,
): Promise<Sent> {
  const { head, relay, replayed } = await accepted;
  if (replayed) res.setHeader('Idempotent-Replayed', 'true');
  await sendJson(res, await relay.answer(head), drainMs);
  return SENT;
}

async function sendStream(
  deps: RespondDeps,
  res: Response,
  accepted: Promise<Accepted<Forwarder>>,
  position: number,
): Promise<Sent> {
  const { head, relay, replayed } = await accepted;
  if (replayed) res.setHeader('Idempotent-Replayed', 'true');
  // An empty stream: clients that repeat a POST would take a 204 for a failure and keep asking.
  if (replayed && position > 0 && (await isReadWhole(deps, res, head.requestId, position, relay)))
    res.writeHead(200, SSE_HEADERS).end();
  else await relay.forward(head);
  return SENT;
}

/** Answers a valid chat body. The chat routes differ only in the bodies they accept. */
export function createRespond(deps: RespondDeps) {
  const { accept, hub, records, requestTimeoutMs: timeoutMs, stopping, relayTimes } = deps;

  // Neither is `async`, and their closures do not name `body`: a suspended function holds its arguments, and an answer
  // may take minutes.
  return {
    complete(req: Request, res: Response, body: ParsedChatBody, endpoint: ChatRoute = 'chat'): Promise<Sent> {
      // If nothing is kept, nobody could read the answer later. RFC 7240 lets a server ignore a preference.
      if (endpoint === 'chat' && wantsAsync(req) && !keepsNothing(principalOf(res)))
        return answerLater(accept, req, res, body);
      const route = { endpoint, stream: false, ...earlierOf(req) };
      const { form } = body;
      const accepted = accept(res, route, body, (shard, requestId, existing) =>
        openCollector(hub, res, { shard, requestId, existing, timeoutMs, stopping, form }),
      );
      return sendComplete(deps, res, accepted);
    },

    /**
     * The answer as Server-Sent Events. An SSE client that was cut off repeats the call with `Last-Event-ID`; under an
     * `Idempotency-Key` it gets the rest, as from `GET /chat/stream/{request_id}`.
     */
    stream(req: Request, res: Response, body: ParsedChatBody): Promise<Sent> {
      const { idempotencyKey, tries } = earlierOf(req);
      // Without an Idempotency-Key every call is a new request, which has no earlier events.
      const position = idempotencyKey === undefined ? 0 : (lastEventId(req.get('Last-Event-ID')) ?? 0);
      const route = { endpoint: 'chat.stream', stream: true, idempotencyKey, tries } as const;
      const { form } = body;
      const accepted = accept(res, route, body, (shard, requestId, existing) =>
        openForwarder(hub, res, {
          shard,
          requestId,
          existing,
          fromSeq: existing ? position + 1 : 1,
          timeoutMs,
          stopping,
          form,
          ...relayTimes,
          place: () => records.place(principalOf(res), requestId),
        }),
      );
      return sendStream(deps, res, accepted, position);
    },
  };
}

export interface ChatDeps {
  respond: Respond;
}

const SIMPLE = { messages: [{ role: 'user', content: 'What is a noun?' }] };
const FULL = {
  model: 'oloid',
  messages: [
    { role: 'system', content: 'Answer in one sentence.' },
    { role: 'user', content: 'What is a noun?' },
  ],
  max_tokens: 256,
  entity_id: 'pupil-7',
  subject: 'English',
  grade: '5',
  metadata: { lesson: 'nouns', page: 12 },
};

const ACCEPTED = {
  id: COMPLETION_EXAMPLE.id,
  object: 'chat.request',
  created_at: COMPLETION_EXAMPLE.created,
  status: 'queued',
};

const acceptedSchema = named(
  'AcceptedChatRequest',
  object({
    id: id('req'),
    object: constant('chat.request'),
    created_at: time('Time of acceptance'),
    status: constant('queued'),
  }),
);

const completed = json('The complete answer.', completionSchema, ['X-Ignored-Fields']);
const streamed: Answer = {
  description: `The answer as it is generated. ${STREAM_TEXT}`,
  content: { 'text/event-stream': chunkSchema },
  headers: ['X-Ignored-Fields'],
};
const accepted = json('Accepted; retrieve the answer at `Location`, or stream it.', acceptedSchema, [
  'Location',
  'Preference-Applied',
  'X-Ignored-Fields',
]);

const chatBody: BodyRule<ParsedChatBody> = {
  kind: 'chat',
  name: 'ChatBody',
  schema: chatWireSchema,
  read: parseChatBody,
};
const chatStreamBody: BodyRule<ParsedChatBody> = {
  kind: 'chat',
  name: 'ChatStreamBody',
  schema: chatStreamWireSchema,
  read: parseChatStreamBody,
};

const createChat = defineEndpoint({
  method: 'POST',
  path: '/chat',
  scopes: ['chat'],
  counts: 'admission',
  tag: 'Chat',
  summary: 'Create a chat completion',
  description: `With \`entity_id\` the stored history precedes the submitted messages, and the answer is stored. Unknown fields are ignored and listed in \`X-Ignored-Fields\`. This endpoint has a limit of its own of ${tenantFields.chatRpm.preset} requests a minute.`,
  headers: ['Prefer', 'X-Stainless-Retry-Count'],
  body: chatBody,
  answers: { 200: completed, 202: accepted },
  examples: {
    simple: { summary: 'One question', body: SIMPLE, status: 200, answer: COMPLETION_EXAMPLE },
    full: {
      summary: 'Every field',
      body: FULL,
      status: 200,
      answer: { ...COMPLETION_EXAMPLE, model: 'oloid', metadata: FULL.metadata },
    },
    asynchronous: {
      summary: 'Without waiting for the answer',
      body: { ...SIMPLE, max_tokens: 64 },
      headers: { Prefer: 'respond-async' },
      status: 202,
      answer: ACCEPTED,
    },
    no_messages: {
      summary: 'Refused: no messages',
      body: { messages: [] },
      status: 400,
      answer: {
        error: {
          code: 'invalid_request',
          message: '`messages` must contain at least 1 item.',
          type: 'invalid_request_error',
          request_id: COMPLETION_EXAMPLE.id,
          param: 'messages',
        },
      },
    },
  },
  handle: ({ req, res, body }, { respond }: ChatDeps) => respond.complete(req, res, body),
});

const streamChat = defineEndpoint({
  method: 'POST',
  path: '/chat/stream',
  scopes: ['chat.stream'],
  counts: 'admission',
  tag: 'Chat',
  summary: 'Stream a chat completion',
  description: `Takes the body of \`POST /chat\`. This endpoint has a limit of its own of ${tenantFields.streamRpm.preset} requests a minute.`,
  headers: ['Last-Event-ID', 'X-Stainless-Retry-Count'],
  body: chatStreamBody,
  answers: { 200: streamed },
  examples: { simple: { summary: 'One question', body: SIMPLE, status: 200, answer: STREAM_EXAMPLE } },
  handle: ({ req, res, body }, { respond }: ChatDeps) => respond.stream(req, res, body),
});

/** Stands for one of the other two, as `stream` says, with its scope and limit (docs/spec.md#openais-client). */
const createChatCompletion = defineEndpoint({
  method: 'POST',
  path: '/chat/completions',
  scopes: ['chat', 'chat.stream'],
  counts: 'admission',
  tag: 'Chat',
  summary: 'Create a chat completion with an OpenAI client',
  description:
    'Takes what the official `openai` client sends. Complete answers need the scope `chat`, streamed ones (`stream: true`) `chat.stream`; each counts against the limit of the endpoint for which it stands.',
  headers: ['Prefer', 'Last-Event-ID', 'X-Stainless-Retry-Count'],
  body: { kind: 'chat', name: 'CompletionsBody', schema: completionsWireSchema, read: parseCompletionsBody },
  answers: {
    200: {
      ...completed,
      description: `The complete answer, or with \`stream: true\` the answer as it is generated. ${COMPLETIONS_STREAM_TEXT} The finish reasons are those of OpenAI: where a request failed or was cancelled it is \`stop\`, beside a top-level \`error\`.`,
      content: { ...completed.content, 'text/event-stream': completionsChunkSchema },
    },
    202: accepted,
  },
  errors: ['model_not_found'],
  examples: {
    complete: {
      summary: 'The whole answer',
      body: { model: 'mobius', ...SIMPLE, temperature: 0.2, max_completion_tokens: 128 },
      status: 200,
      answer: COMPLETION_EXAMPLE,
    },
    parts: {
      summary: 'Content in parts',
      body: {
        messages: [
          { role: 'developer', content: 'Answer in one sentence.' },
          { role: 'user', content: [{ type: 'text', text: 'What is a noun?' }] },
        ],
        stop: ['\n\n'],
        n: 1,
        seed: null,
      },
      status: 200,
      answer: COMPLETION_EXAMPLE,
    },
    streamed: {
      summary: 'The answer as a stream',
      body: { model: 'mobius', ...SIMPLE, stream: true, stream_options: { include_usage: true } },
      status: 200,
      answer: COMPLETIONS_STREAM_EXAMPLE,
      answerType: 'text/event-stream',
    },
  },
  handle({ req, res, body }, { respond }: ChatDeps) {
    assertScope(res, body.stream ? 'chat.stream' : 'chat');
    return body.stream ? respond.stream(req, res, body) : respond.complete(req, res, body);
  },
});

/** Chat completions (docs/spec.md#chat). */
export const chatEndpoints = { createChat, streamChat, createChatCompletion };
