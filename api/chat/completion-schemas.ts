import { KIND_NAMES, TOKEN_KINDS } from '../../shared/contracts/events.ts';
import {
  errorObjectSchema,
  constant,
  id,
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  oneOf,
  text,
  time,
} from '../contract/json-schema.ts';
import type { JsonSchema } from '../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../contract/path-parameters.ts';

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'content_filter', 'cancelled'] as const;

/** The kinds of tokens of a count, on `POST /chat/completions` only. */
const detailsSchema = (of: 'prompt' | 'completion'): JsonSchema => {
  const names = KIND_NAMES.map((kind) => TOKEN_KINDS[kind]).flatMap(([count, name]) => (count === of ? [name] : []));
  return object(Object.fromEntries(names.map((name) => [name, integer(undefined, 1)])), names);
};

export const usageSchema = named(
  'Usage',
  object(
    {
      prompt_tokens: integer(undefined, 0),
      completion_tokens: integer(undefined, 0),
      total_tokens: integer(undefined, 0),
      prompt_tokens_details: detailsSchema('prompt'),
      completion_tokens_details: detailsSchema('completion'),
    },
    ['prompt_tokens_details', 'completion_tokens_details'],
  ),
);

const metadata: JsonSchema = { type: 'object', description: "The request's own `metadata`." };
const head = (kind: string) => ({
  id: id('req'),
  object: constant(kind),
  created: time('Time at which the request was accepted'),
  model: text('The tier that served the request, or the published name under which it was asked for.'),
});

/** Fields of a `message` or, in parts that continue each other, of a `delta`, for requests of `POST /chat/completions`. */
function besideContent(callFields: readonly string[]) {
  const called = object({ name: text(), arguments: text('JSON.') }, callFields);
  return {
    tool_calls: listOf(
      object({ index: integer('In streams.'), id: text(), type: text(), function: called }, [
        'index',
        'function',
        ...callFields,
      ]),
      'The tools that the model calls.',
    ),
    refusal: text('Why the model refuses to answer.'),
    reasoning_content: text('What the model reasoned, where its provider shows that; or `reasoning`.'),
  };
}
const logprobs: JsonSchema = { type: 'object', description: 'Where the request asked for them.' };
const BESIDE_CONTENT = ['tool_calls', 'refusal', 'reasoning_content'] as const;

export const completionSchema = named(
  'ChatCompletion',
  object(
    {
      ...head('chat.completion'),
      choices: {
        ...listOf(
          object(
            {
              index: integer(),
              message: object(
                {
                  role: constant('assistant'),
                  content: nullable(text('Null where the model calls tools or refuses, and says no more.')),
                  ...besideContent([]),
                },
                BESIDE_CONTENT,
              ),
              logprobs,
              finish_reason: oneOf(FINISH_REASONS),
            },
            ['logprobs'],
          ),
        ),
        minItems: 1,
        maxItems: 1,
      },
      usage: usageSchema,
      metadata,
      error: { ...errorObjectSchema, description: 'On `POST /chat/completions`, where the request was cancelled.' },
    },
    ['metadata', 'error'],
  ),
);

const choicesOfChunk = {
  ...listOf(
    object(
      {
        index: integer(),
        delta: object(
          {
            role: constant('assistant'),
            content: text('The next part of the text.'),
            ...besideContent(['id', 'type', 'name', 'arguments']),
          },
          ['role', 'content', ...BESIDE_CONTENT],
        ),
        logprobs,
        finish_reason: nullable(
          oneOf([...FINISH_REASONS, 'error'], 'Null in every chunk but the last; `error`: the stream failed.'),
        ),
      },
      ['logprobs'],
    ),
  ),
  minItems: 1,
  maxItems: 1,
};
const fieldsOfChunk = {
  ...head('chat.completion.chunk'),
  choices: choicesOfChunk,
  usage: { ...usageSchema, description: 'In the last chunk.' },
  metadata: { ...metadata, description: "The request's own `metadata`, in the last chunk." },
  error: { ...errorObjectSchema, description: 'In the last chunk of a stream that failed.' },
};
const OPTIONAL_OF_CHUNK = ['usage', 'metadata', 'error'] as const;

export const chunkSchema = named('ChatCompletionChunk', object(fieldsOfChunk, OPTIONAL_OF_CHUNK));

/** With `stream_options.include_usage` a chunk of its own has the usage. */
export const completionsChunkSchema = named(
  'CompletionsChunk',
  object(
    {
      ...fieldsOfChunk,
      choices: { ...choicesOfChunk, minItems: 0 },
      usage: {
        anyOf: [usageSchema, { type: 'null' }],
        description:
          'In the last chunk; with `include_usage: true` in one without choices behind it, with `false` in none.',
      },
    },
    OPTIONAL_OF_CHUNK,
  ),
);

const REQUEST_ID = PATH_PARAMETERS.requestId.example;
const CREATED = 1_795_255_200;
const USAGE = { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 };
const TEXT = 'A noun names a person, a place or a thing.';

export const COMPLETION_EXAMPLE = {
  id: REQUEST_ID,
  object: 'chat.completion',
  created: CREATED,
  model: 'mobius',
  choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
  usage: USAGE,
};

function event(number: number, delta: object, reason: string | null, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  const head = { id: REQUEST_ID, object: 'chat.completion.chunk', created: CREATED, model: 'mobius' };
  return `id: ${number}\ndata: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
}

export const STREAM_EXAMPLE = [
  event(1, { role: 'assistant', content: 'A noun names a person, ' }, null),
  event(2, { content: 'a place or a thing.' }, null),
  event(3, {}, 'stop', { usage: USAGE }),
  'id: 4\ndata: [DONE]\n\n',
].join('');

export const COMPLETIONS_STREAM_EXAMPLE = STREAM_EXAMPLE.replaceAll(/^id: .*\n/gm, '');

const streamText = (ids: string) =>
  [
    `Server-Sent Events. Each \`data:\` line is one chunk as JSON, the last one \`[DONE]\`; ${ids}.`,
    'A line that begins with a colon is a heartbeat. A stream that fails ends with a chunk that has `error`, without',
    '`[DONE]`.',
  ].join(' ');

export const STREAM_TEXT = streamText('`id:` numbers the events from 1');

export const COMPLETIONS_STREAM_TEXT = `${streamText(
  'there is no `id:`, but `starting_after` of `GET /chat/stream/{request_id}` counts the events from 1',
)} Behind that chunk the error comes once more, as an object of its own.`;

export const embeddingListSchema = named(
  'EmbeddingList',
  object({
    object: constant('list'),
    data: listOf(
      object({
        object: constant('embedding'),
        index: integer('The place of its input.', 0),
        embedding: { anyOf: [listOf(number()), text('As base64.')] },
      }),
    ),
    model: text('The name that was asked for.'),
    usage: object({ prompt_tokens: integer(undefined, 0), total_tokens: integer(undefined, 0) }),
  }),
);

const byCategory = (value: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: value });
export const moderationSchema = named(
  'Moderation',
  object({
    id: id('req'),
    model: text('The moderator.'),
    results: listOf(
      object({
        flagged: { type: 'boolean', description: "By the tenant's settings." },
        categories: byCategory({ type: 'boolean' }),
        category_scores: byCategory(number()),
      }),
    ),
  }),
);
