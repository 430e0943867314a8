import { TIERS } from '../../../shared/contracts/chat-request.ts';
import {
  constant,
  id,
  integer,
  listOf,
  nullable,
  number,
  object,
  oneOf,
  ref,
  text,
  time,
} from '../../openapi/schema.ts';
import type { JsonSchema } from '../../openapi/schema.ts';

const FINISH_REASONS = ['stop', 'length', 'content_filter', 'cancelled'] as const;

const metadata: JsonSchema = { type: 'object', description: "The request's own `metadata`." };
const head = (kind: string) => ({
  id: id('req'),
  object: constant(kind),
  created: time('When the request was accepted'),
  model: oneOf(TIERS, 'The tier that served the request.'),
});

const completion = object(
  {
    ...head('chat.completion'),
    choices: {
      ...listOf(
        object({
          index: integer(),
          message: object({ role: constant('assistant'), content: text() }),
          finish_reason: oneOf(FINISH_REASONS),
        }),
      ),
      minItems: 1,
      maxItems: 1,
    },
    usage: ref('Usage'),
    metadata,
  },
  ['metadata'],
);

const chunk = object(
  {
    ...head('chat.completion.chunk'),
    choices: {
      ...listOf(
        object({
          index: integer(),
          delta: object({ role: constant('assistant'), content: text('The next piece of the text.') }, [
            'role',
            'content',
          ]),
          finish_reason: nullable(
            oneOf([...FINISH_REASONS, 'error'], 'Null in every chunk but the last; `error`: the stream has failed.'),
          ),
        }),
      ),
      minItems: 1,
      maxItems: 1,
    },
    usage: { ...ref('Usage'), description: 'In the last chunk.' },
    metadata: { ...metadata, description: "The request's own `metadata`, in the last chunk." },
    error: { ...ref('ErrorObject'), description: 'In the last chunk of a stream that has failed.' },
  },
  ['usage', 'metadata', 'error'],
);

/** Unix seconds with milliseconds behind the point. */
const moment = (description: string) => nullable(number(`${description}, in Unix seconds with milliseconds.`));

const attempt = object({
  provider: text(),
  model: text(),
  started_at: moment('When the provider was called'),
  ended_at: moment('When the call ended'),
  outcome: text('`ok`, why it failed, or `breaker_open`: it was not made.'),
});

const moderation = object({
  backend: text(),
  verdict: oneOf(['passed', 'flagged_input', 'flagged_output', 'unavailable']),
  categories: listOf(text()),
});

const request = object({
  id: id('req'),
  object: constant('chat.request'),
  created_at: time('When it was accepted'),
  status: oneOf(['queued', 'in_progress', 'completed', 'failed', 'cancelled']),
  timeline: object({
    accepted_at: moment('When it was accepted'),
    queued_at: moment('When it was queued'),
    started_at: moment('When a worker began'),
    moderated_at: moment('When moderation had passed the messages'),
    moderation: nullable(moderation),
    first_token_at: moment('When the first text came'),
    finished_at: moment('When it ended'),
    settled_at: moment('When it was booked'),
    attempts: listOf(attempt),
  }),
  response: {
    anyOf: [ref('ChatCompletion'), { type: 'null' }],
    description: 'Null until it has ended with an answer.',
  },
  error: { anyOf: [ref('ErrorObject'), { type: 'null' }], description: 'Null unless it has failed.' },
  usage: { anyOf: [ref('Usage'), { type: 'null' }], description: 'Null until it has ended.' },
});

export const chatSchemas: Readonly<Record<string, JsonSchema>> = {
  Usage: object({
    prompt_tokens: integer(undefined, 0),
    completion_tokens: integer(undefined, 0),
    total_tokens: integer(undefined, 0),
  }),
  ChatCompletion: completion,
  ChatCompletionChunk: chunk,
  ChatRequestState: request,
  AcceptedChatRequest: object({
    id: id('req'),
    object: constant('chat.request'),
    created_at: time('When it was accepted'),
    status: constant('queued'),
  }),
  ModelList: object({
    object: constant('list'),
    data: listOf(
      object({
        id: oneOf(TIERS),
        object: constant('model'),
        created: time('Since when there is it'),
        owned_by: text(),
      }),
    ),
  }),
};
