import Joi from 'joi';

import { ServiceError } from '../../shared/errors/service-error.ts';
import {
  CHAT_LIMITS,
  answerTokensSchema,
  codePoints,
  contextTextSchema,
  entityIdSchema,
  maxTokensSchema,
  messagesSchema,
  metadataSchema,
  numberBetween,
  tierSchema,
} from '../../shared/contracts/chat-request.ts';
import type { ChatMessage, ChatRequest, Sampling, Tier } from '../../shared/contracts/chat-request.ts';
import { wellFormedJson } from '../../shared/contracts/well-formed-json.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import { messagesWithText, plainMessage, wireMessagesSchema } from './completions-messages.ts';
import { checkReadable, ignoredIn, isPlainChatBody } from './parse-chat-body.ts';
import type { ParsedChatBody } from './parse-chat-body.ts';

/** What `POST /chat/completions` accepts of OpenAI's API, plus this service's own fields. */
interface CompletionsBody {
  messages: ChatMessage[];
  model?: Tier;
  max_tokens?: number;
  max_completion_tokens?: number;
  stream?: boolean;
  temperature?: number;
  top_p?: number;
  stop?: string | string[];
  seed?: number;
  user?: string;
  response_format?: { type: 'text' | 'json_object' };
  metadata?: object;
  entity_id?: string;
  subject?: string;
  grade?: string;
}

/** Maximum code points of `user` and of each `stop`. */
const SHORT_TEXT_MAX = 256;

const shortText = Joi.string().custom(codePoints(SHORT_TEXT_MAX));

const fields = {
  messages: messagesSchema,
  model: tierSchema,
  max_tokens: maxTokensSchema,
  max_completion_tokens: answerTokensSchema.description('Wins over `max_tokens`.'),
  stream: Joi.boolean().description('The answer as Server-Sent Events; needs the scope `chat.stream`.'),
  stream_options: Joi.object({ include_usage: Joi.boolean() })
    .unknown(true)
    .description('Taken for compatibility: the last chunk always has `usage`.'),
  temperature: numberBetween(0, 2),
  top_p: numberBetween(0, 1),
  stop: Joi.alternatives(shortText, Joi.array().items(shortText).min(1).max(4)),
  seed: Joi.number().integer(),
  user: shortText,
  response_format: Joi.object({ type: Joi.string().valid('text', 'json_object').required() }).unknown(true),
  n: Joi.number().valid(1),
  modalities: Joi.array().items(Joi.string().valid('text')).min(1).max(1),
  metadata: metadataSchema,
  entity_id: entityIdSchema,
  subject: contextTextSchema,
  grade: contextTextSchema,
};
const bodySchema = Joi.object<CompletionsBody>(fields).unknown(true).required();
const KNOWN_FIELDS: ReadonlySet<string> = new Set(Object.keys(fields));
const OPTIONAL_FIELDS = Object.entries(fields).filter(([name]) => name !== 'messages');
const OPTIONAL_NAMES: ReadonlySet<string> = new Set(OPTIONAL_FIELDS.map(([name]) => name));

const noneOffered = Joi.array().max(0).allow(null).description('Not supported: an empty list only.');
const noneDemanded = Joi.valid('none', 'auto', null).description('Not supported: the model has no tools to choose.');

/**
 * A request for something that this service cannot do must fail, because ignoring the field would mislead the caller.
 * Frameworks send these fields even if their user has no tools; such values ask for nothing and are accepted.
 */
const REFUSED_FIELDS = {
  tools: noneOffered,
  tool_choice: noneDemanded,
  functions: noneOffered,
  function_call: noneDemanded,
  audio: Joi.valid(null).description('Not supported: this service answers with text.'),
} as const satisfies Readonly<Record<string, Joi.Schema>>;
const REFUSED_ENTRIES = Object.entries(REFUSED_FIELDS);

/**
 * The body as it may come over the wire; `plainMessage` and `withoutNulls` turn it into one for `bodySchema`. Used only
 * in the document; a test compares it with what `parseCompletionsBody` accepts.
 */
export const completionsWireSchema = bodySchema.keys({
  ...Object.fromEntries(OPTIONAL_FIELDS.map(([name, schema]) => [name, schema.allow(null)])),
  messages: wireMessagesSchema,
  ...REFUSED_FIELDS,
});

/** The official client, and many that print objects as JSON, send `null` for fields that their user leaves out. */
function withoutNulls(body: unknown): unknown {
  if (!isRecord(body) || !OPTIONAL_FIELDS.some(([name]) => body[name] === null)) return body;
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== null || !OPTIONAL_NAMES.has(name)),
  );
}

function samplingOf({ temperature, top_p: topP, stop, seed, user }: CompletionsBody): Sampling {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stop === undefined ? {} : { stop }),
    ...(seed === undefined ? {} : { seed }),
    ...(user === undefined ? {} : { user }),
  };
}

function toRequest(body: CompletionsBody): ChatRequest {
  const { model, metadata, entity_id: entityId, subject, grade } = body;
  return {
    messages: messagesWithText(body.messages),
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? CHAT_LIMITS.maxTokensDefault,
    jsonMode: body.response_format?.type === 'json_object',
    sampling: samplingOf(body),
    ...(model === undefined ? {} : { model }),
    ...(metadata === undefined ? {} : { metadataJson: wellFormedJson(metadata) }),
    ...(entityId === undefined ? {} : { entityId }),
    ...(subject === undefined ? {} : { subject }),
    ...(grade === undefined ? {} : { grade }),
  };
}

/** Fields that few bodies have: a body with one of them is checked by joi. */
const RARE_FIELDS = [
  'max_completion_tokens',
  'stream_options',
  'stop',
  'seed',
  'user',
  'response_format',
  'n',
  'modalities',
] as const;

const isWithin = (value: unknown, most: number) => typeof value === 'number' && value >= 0 && value <= most;

/**
 * Whether a body looks like most clients' bodies: a plain one of the chat routes, and perhaps `stream`, `temperature`
 * and `top_p`. joi would accept it, but takes ten times as long; all other bodies are checked by joi alone.
 */
export function isPlainCompletionsBody(input: unknown): input is CompletionsBody {
  if (!isRecord(input) || !isPlainChatBody(input) || RARE_FIELDS.some((name) => name in input)) return false;
  const { stream = false, temperature = 0, top_p: topP = 0 } = input;
  return typeof stream === 'boolean' && isWithin(temperature, 2) && isWithin(topP, 1);
}

function refuseTools(body: Readonly<Record<string, unknown>>): void {
  for (const [name, schema] of REFUSED_ENTRIES) {
    if (body[name] === undefined || schema.validate(body[name], { convert: false }).error === undefined) continue;
    throw new ServiceError('invalid_request', `\`${name}\` is not supported: this service answers with text only.`, {
      param: name,
    });
  }
}

/** Throws `invalid_request`, `message_too_long` or `too_many_messages`, like the chat routes. */
export function parseCompletionsBody(input: unknown): ParsedChatBody & { stream: boolean } {
  if (isRecord(input)) refuseTools(input);
  const messages: unknown = isRecord(input) ? input['messages'] : undefined;
  // Beyond the limit, messages are not converted one by one: the schema refuses their number.
  const mayMap = Array.isArray(messages) && messages.length <= CHAT_LIMITS.messagesMax;
  const plain: unknown = mayMap && isRecord(input) ? { ...input, messages: messages.map(plainMessage) } : input;
  const body = withoutNulls(plain);
  if (!isPlainCompletionsBody(body)) checkReadable(bodySchema, body, KNOWN_FIELDS);
  return {
    request: toRequest(body),
    // The messages as sent, including those without text; each is an object, or the body would have been refused.
    ignoredFields: ignoredIn(body, messages as readonly object[], KNOWN_FIELDS),
    form: 'completions',
    stream: body.stream === true,
  };
}
