import { tenantFields } from '../../shared/contracts/tenant-fields.ts';
import { defineEndpoint, json } from '../contract/endpoint.ts';
import { constant, id, named, object, time } from '../contract/json-schema.ts';
import type { Answer, BodyRule } from '../contract/endpoint.ts';
import { chatStreamWireSchema, chatWireSchema, parseChatBody, parseChatStreamBody } from './chat-body.ts';
import type { ParsedChatBody } from './chat-body.ts';
import { completionsWireSchema, parseCompletionsBody } from './completions-body.ts';
import { assertScope } from '../http/authenticate.ts';
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
import type { Respond } from './respond.ts';

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
  body: {
    kind: 'chat',
    name: 'CompletionsBody',
    schema: completionsWireSchema,
    read: parseCompletionsBody,
  },
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
