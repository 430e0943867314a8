import { chatBodySchema } from '../../../shared/contracts/chat-request.ts';
import { completionsWireSchema } from '../../contract/parse-completions-body.ts';
import { json } from '../../openapi/operation.ts';
import type { Answer, OperationsOf } from '../../openapi/operation.ts';
import { PATH_PARAMETERS } from '../../openapi/parameters.ts';
import { ref } from '../../openapi/schema.ts';
import { resumeQuerySchema } from '../chat-stream/schema.ts';

const REQUEST_ID = PATH_PARAMETERS.requestId.example;
const CREATED = 1_795_255_200;
const USAGE = { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 };
const TEXT = 'A noun names a person, a place or a thing.';

const COMPLETION = {
  id: REQUEST_ID,
  object: 'chat.completion',
  created: CREATED,
  model: 'mobius',
  choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
  usage: USAGE,
};
const ACCEPTED = { id: REQUEST_ID, object: 'chat.request', created_at: CREATED, status: 'queued' };

function event(number: number, delta: object, reason: string | null, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  const head = { id: REQUEST_ID, object: 'chat.completion.chunk', created: CREATED, model: 'mobius' };
  return `id: ${number}\ndata: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
}

const STREAM = [
  event(1, { role: 'assistant', content: 'A noun names a person, ' }, null),
  event(2, { content: 'a place or a thing.' }, null),
  event(3, {}, 'stop', { usage: USAGE }),
  'id: 4\ndata: [DONE]\n\n',
].join('');

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

const STREAM_TEXT = [
  'Server-Sent Events. Each `data:` line is one chunk as JSON, the last one `[DONE]`; `id:` numbers the events from 1.',
  'A line that begins with a colon is a heartbeat. A stream that fails ends with a chunk that has `error`, without',
  '`[DONE]`.',
].join(' ');

const streamed = (description: string): Answer => ({
  description: `${description} ${STREAM_TEXT}`,
  content: { 'text/event-stream': ref('ChatCompletionChunk') },
  headers: ['Idempotent-Replayed', 'X-Ignored-Fields'],
});
const completed = json('The whole answer.', ref('ChatCompletion'), ['Idempotent-Replayed', 'X-Ignored-Fields']);
const accepted = json('Accepted; look the answer up at `Location`, or stream it.', ref('AcceptedChatRequest'), [
  'Location',
  'Preference-Applied',
  'Idempotent-Replayed',
  'X-Ignored-Fields',
]);

/** What the document tells of the chat routes. */
export const chatOperations: OperationsOf<'createChat' | 'streamChat' | 'createChatCompletion' | 'resumeChatStream'> = {
  createChat: {
    tag: 'Chat',
    summary: 'Answer a conversation',
    description:
      'With `entity_id` the stored history comes before the submitted messages, and the answer is stored. Fields that are not known are ignored and named in `X-Ignored-Fields`. Has a limit of its own of 120 requests a minute.',
    headers: ['Idempotency-Key', 'Prefer'],
    body: { name: 'ChatBody', schema: chatBodySchema },
    answers: { 200: completed, 202: accepted },
    examples: {
      simple: { summary: 'One question', body: SIMPLE, status: 200, answer: COMPLETION },
      full: {
        summary: 'Every field',
        body: FULL,
        status: 200,
        answer: { ...COMPLETION, model: 'oloid', metadata: FULL.metadata },
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
            message: '`messages` must contain at least 1 items.',
            type: 'invalid_request_error',
            request_id: REQUEST_ID,
            param: 'messages',
          },
        },
      },
    },
  },
  streamChat: {
    tag: 'Chat',
    summary: 'Answer a conversation as a stream',
    description: 'Takes the body of `POST /chat`. Has a limit of its own of 60 requests a minute.',
    headers: ['Idempotency-Key'],
    body: { name: 'ChatBody', schema: chatBodySchema },
    answers: { 200: streamed('The answer as it grows.') },
    examples: { simple: { summary: 'One question', body: SIMPLE, status: 200, answer: STREAM } },
  },
  createChatCompletion: {
    tag: 'Chat',
    summary: 'Answer a conversation, for clients of OpenAI',
    description:
      'Takes what the official `openai` client sends. Complete answers need the scope `chat`, streamed ones (`stream: true`) `chat.stream`; each takes from the limit of the route that it stands for.',
    headers: ['Idempotency-Key', 'Prefer'],
    body: { name: 'CompletionsBody', schema: completionsWireSchema },
    answers: {
      200: {
        ...completed,
        description: `The whole answer, or with \`stream: true\` the answer as it grows. ${STREAM_TEXT}`,
        content: { ...completed.content, 'text/event-stream': ref('ChatCompletionChunk') },
      },
      202: accepted,
    },
    examples: {
      complete: {
        summary: 'The whole answer',
        body: { model: 'mobius', ...SIMPLE, temperature: 0.2, max_completion_tokens: 128 },
        status: 200,
        answer: COMPLETION,
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
        answer: COMPLETION,
      },
      streamed: {
        summary: 'The answer as a stream',
        body: { model: 'mobius', ...SIMPLE, stream: true, stream_options: { include_usage: true } },
        status: 200,
        answer: STREAM,
        answerType: 'text/event-stream',
      },
    },
  },
  resumeChatStream: {
    tag: 'Chat',
    summary: 'Read a stream again, from any event',
    description:
      'The same bytes as the first time, while the request runs and for 15 minutes after (24 hours with an `Idempotency-Key` or asynchronously). It takes nothing from the limit of the key: 600 look-ups a minute are allowed beside it.',
    query: [resumeQuerySchema],
    headers: ['Last-Event-ID'],
    answers: {
      200: { ...streamed('The rest of the stream.'), headers: [] },
      204: { description: 'The client has all of it.' },
    },
    errors: ['gone'],
    examples: {
      whole: { summary: 'From the start', status: 200, answer: STREAM },
      rest: {
        summary: 'Behind the first event',
        query: { starting_after: 1 },
        status: 200,
        answer: STREAM.slice(STREAM.indexOf('id: 2')),
      },
    },
  },
};
