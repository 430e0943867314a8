import Joi from 'joi';

import {
  CHAT_LIMITS,
  contextTextSchema,
  entityIdSchema,
  messagesSchema,
  metadataSchema,
  numberBetween,
  wholeNumberBetween,
  textUpTo,
  tierSchema,
} from '../../shared/contracts/chat-request.ts';
import type { ChatMessage, ChatRequest, Sampling, Tier } from '../../shared/contracts/chat-request.ts';
import { wellFormedJson } from '../../shared/contracts/well-formed-json.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import type { OpenAiForm } from '../relay/answer.ts';
import { messagesWithText, plainMessage, wireMessagesSchema } from './completions-messages.ts';
import { checkReadable, ignoredIn } from './parse-chat-body.ts';
import type { ParsedChatBody } from './parse-chat-body.ts';
import { acceptedOf, refuseUnserved, UNSERVED } from './unserved-fields.ts';

/** What `POST /chat/completions` accepts of OpenAI's API, plus this service's own fields. */
interface CompletionsBody {
  messages: ChatMessage[];
  model?: Tier;
  max_tokens?: number;
  max_completion_tokens?: number;
  stream?: boolean;
  temperature?: number;
  top_p?: number;
  stop?: string | (string | null)[];
  seed?: number;
  user?: string;
  frequency_penalty?: number;
  presence_penalty?: number;
  reasoning_effort?: string;
  verbosity?: string;
  stream_options?: { include_usage?: boolean | null };
  response_format?: { type?: 'text' | 'json_object' | null };
  json_mode?: boolean;
  metadata?: object;
  entity_id?: string;
  subject?: string;
  grade?: string;
}

const FORMAT_RULE =
  '{{#label}} must be `text` or `json_object`: a schema is not supported; use `json_object` (JSON mode) and say in a message which fields the object has';

/** Maximum code points of `user` and of each `stop`. */
const SHORT_TEXT_MAX = 256;

const shortText = textUpTo(SHORT_TEXT_MAX);
const tokens = wholeNumberBetween(1, Number.MAX_SAFE_INTEGER);
const passedOn = 'Passed on to providers that speak OpenAI’s protocol.';

const fields = {
  messages: messagesSchema,
  model: tierSchema,
  max_tokens: tokens
    .description(
      `The most tokens that the answer may have: ${String(CHAT_LIMITS.maxTokensMax)}, or what the window of the model leaves, where it is more than that.`,
    )
    .meta({ default: CHAT_LIMITS.maxTokensDefault }),
  max_completion_tokens: tokens.description('Wins over `max_tokens`.'),
  stream: Joi.boolean().description('The answer as Server-Sent Events; needs the scope `chat.stream`.'),
  stream_options: Joi.object({ include_usage: Joi.boolean().allow(null) })
    .unknown(true)
    .description(
      'With `include_usage: true` a chunk of its own without choices has `usage`, with `false` none has; otherwise the last one.',
    ),
  temperature: numberBetween(0, 2),
  top_p: numberBetween(0, 1),
  stop: Joi.alternatives(shortText.allow(''), Joi.array().items(shortText.allow('', null)).max(4)).description(
    'Empty texts and an empty list stop nothing.',
  ),
  seed: Joi.number().integer(),
  user: shortText,
  frequency_penalty: numberBetween(-2, 2).description(passedOn),
  presence_penalty: numberBetween(-2, 2).description(passedOn),
  reasoning_effort: shortText.description(passedOn),
  verbosity: shortText.description(passedOn),
  response_format: Joi.object({
    type: Joi.string().valid('text', 'json_object').allow(null).messages({ 'any.only': FORMAT_RULE }),
  }).unknown(true),
  json_mode: Joi.boolean().description('The same as `response_format` of the type `json_object`.'),
  n: Joi.valid(1),
  modalities: Joi.array().items(Joi.string().valid('text')).max(1),
  metadata: metadataSchema,
  entity_id: entityIdSchema,
  subject: contextTextSchema,
  grade: contextTextSchema,
};
const bodySchema = Joi.object<CompletionsBody>(fields).unknown(true).required();
const KNOWN_FIELDS: ReadonlySet<string> = new Set(Object.keys(fields));
const OPTIONAL_FIELDS = Object.entries(fields).filter(([name]) => name !== 'messages');
const OPTIONAL_NAMES: ReadonlySet<string> = new Set(OPTIONAL_FIELDS.map(([name]) => name));

/**
 * The body as it may come over the wire; `plainMessage` and `withoutNulls` turn it into one for `bodySchema`. Used only
 * in the document; a test compares it with what `parseCompletionsBody` accepts.
 */
export const completionsWireSchema = bodySchema.keys({
  ...Object.fromEntries(OPTIONAL_FIELDS.map(([name, schema]) => [name, schema.allow(null)])),
  messages: wireMessagesSchema,
  ...acceptedOf(UNSERVED),
});

/** The official client, and many that print objects as JSON, send `null` for fields that their user leaves out. */
function withoutNulls(body: unknown): unknown {
  if (!isRecord(body) || !OPTIONAL_FIELDS.some(([name]) => body[name] === null)) return body;
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== null || !OPTIONAL_NAMES.has(name)),
  );
}

/** The texts that end the answer; undefined: none does. */
function stopOf(stop: CompletionsBody['stop']): Sampling['stop'] {
  if (!Array.isArray(stop)) return stop === '' ? undefined : stop;
  const texts = stop.filter((text): text is string => text !== null && text !== '');
  return texts.length === 0 ? undefined : texts;
}

/** A penalty of 0 is none. */
const penaltyOf = (penalty: number | undefined) => (penalty === 0 ? undefined : penalty);

function samplingOf(body: CompletionsBody): Sampling {
  const sampling: { [Name in keyof Sampling]: Sampling[Name] | undefined } = {
    temperature: body.temperature,
    topP: body.top_p,
    stop: stopOf(body.stop),
    seed: body.seed,
    user: body.user,
    frequencyPenalty: penaltyOf(body.frequency_penalty),
    presencePenalty: penaltyOf(body.presence_penalty),
    reasoningEffort: body.reasoning_effort,
    verbosity: body.verbosity,
  };
  // Only what is set travels to the worker and makes one body differ from another.
  return Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== undefined));
}

function toRequest(body: CompletionsBody): ChatRequest {
  const { model, metadata, entity_id: entityId, subject, grade } = body;
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? CHAT_LIMITS.maxTokensDefault;
  return {
    messages: messagesWithText(body.messages),
    maxTokens: Math.min(maxTokens, CHAT_LIMITS.maxTokensMax),
    fitsTokens: true,
    jsonMode: body.json_mode === true || body.response_format?.type === 'json_object',
    sampling: samplingOf(body),
    ...(model === undefined ? {} : { model }),
    ...(metadata === undefined ? {} : { metadataJson: wellFormedJson(metadata) }),
    ...(entityId === undefined ? {} : { entityId }),
    ...(subject === undefined ? {} : { subject }),
    ...(grade === undefined ? {} : { grade }),
  };
}

/** Where a stream has its usage: OpenAI has it in a chunk of its own, and only if asked for. */
function usagePlaceOf({ stream_options: options }: CompletionsBody): OpenAiForm['usage'] {
  switch (options?.include_usage ?? undefined) {
    case true:
      return 'own chunk';
    case false:
      return 'none';
    case undefined:
      return 'last chunk';
  }
}

/** Throws `invalid_request`, `message_too_long` or `too_many_messages`, like the chat routes. */
export function parseCompletionsBody(input: unknown): ParsedChatBody & { stream: boolean } {
  refuseUnserved(input, UNSERVED);
  const messages: unknown = isRecord(input) ? input['messages'] : undefined;
  // Beyond the limit, messages are not converted one by one: the schema refuses their number.
  const mayMap = Array.isArray(messages) && messages.length <= CHAT_LIMITS.messagesMax;
  const plain: unknown = mayMap && isRecord(input) ? { ...input, messages: messages.map(plainMessage) } : input;
  const body = withoutNulls(plain);
  checkReadable(bodySchema, body, KNOWN_FIELDS);
  return {
    request: toRequest(body),
    // The messages as sent, including those without text; each is an object, or the body would have been refused.
    ignoredFields: ignoredIn(body, messages as readonly object[], KNOWN_FIELDS),
    form: { usage: usagePlaceOf(body) },
    stream: body.stream === true,
  };
}
