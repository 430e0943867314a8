import Joi from 'joi';

import {
  CHAT_LIMITS,
  ROLES,
  chatRules,
  numberBetween,
  textUpTo,
  wholeNumberBetween,
} from '../../shared/contracts/chat-request.ts';
import type { ChatBody, ChatMessage, ChatRequest } from '../../shared/contracts/chat-request.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { OpenAiForm } from '../relay/sse.ts';
import { UNSERVED, acceptedOf, checkReadable, ignoredIn, refuseUnserved, requestOf } from './chat-body.ts';
import type { ParsedChatBody } from './chat-body.ts';
import { readAnswerSchema } from './response-format.ts';

/** OpenAI's messages, which `POST /chat/completions` accepts in addition to the plain ones of the chat routes. */

const textPart = Joi.object({ type: Joi.string().valid('text').required(), text: Joi.string().allow('', null) });

const messageWithText = Joi.object({
  role: Joi.string()
    .valid(...ROLES, 'developer')
    .description('`developer` is another name for `system`.')
    .required(),
  content: Joi.alternatives(textUpTo(CHAT_LIMITS.contentMax), Joi.array().items(textPart.unknown(true)).min(1))
    .description(`Text, or parts of text that together are 1 to ${String(CHAT_LIMITS.contentMax)} characters.`)
    .required(),
}).unknown(true);

const messageWithoutText = Joi.object({
  role: Joi.string().valid('assistant').required(),
  content: Joi.alternatives(Joi.valid('', null), Joi.array().max(0)).description(
    'An answer without text is left out of the conversation.',
  ),
  tool_calls: Joi.array().max(0).allow(null),
  function_call: Joi.valid(null),
}).unknown(true);

/** The messages as they come over the wire, for the document. A schema cannot say that at least one must have text. */
const wireMessagesSchema = Joi.array()
  .max(CHAT_LIMITS.messagesMax)
  .min(1)
  .items(messageWithText, messageWithoutText)
  .description('The conversation, oldest message first. At least one message has text.')
  .required();

/** Stands for an answer without text until all messages are checked, so that errors name the caller's own indexes. */
const WITHOUT_TEXT: ChatMessage = Object.freeze({ role: 'assistant', content: '-' });

function textOfPart(part: unknown, param: string): string {
  if (isRecord(part) && part['type'] === 'text') {
    const text = part['text'] ?? '';
    if (typeof text === 'string') return text;
  }
  throw new ServiceError(
    'invalid_request',
    `\`${param}\` may hold text parts only; images and audio are not supported.`,
    { param },
  );
}

function refuseTools(param: string): never {
  throw new ServiceError(
    'invalid_request',
    `Calls and results of tools are not supported in \`messages\`; leave \`${param}\` out, or say it as text of the user.`,
    { param },
  );
}

/** Without this, an answer with only tool calls would be dropped, and the model would not know what it asked for. */
function refuseToolCalls({ tool_calls: calls, function_call: call }: Record<string, unknown>, param: string): void {
  if (Array.isArray(calls) ? calls.length > 0 : (calls ?? null) !== null) refuseTools(`${param}.tool_calls`);
  if ((call ?? null) !== null) refuseTools(`${param}.function_call`);
}

/**
 * Converts OpenAI's other ways to write a message: content in parts, `developer` for what used to be `system`, and an
 * answer without text. This service gives such answers too, and clients that keep their conversation send them back.
 */
function plainMessage(message: unknown, index: number): unknown {
  if (!isRecord(message)) return message;
  const param = `messages[${index}]`;
  const { role } = message;
  if (role === 'tool' || role === 'function') refuseTools(`${param}.role`);
  const given = message['content'];
  const content: unknown = Array.isArray(given)
    ? given.map((part) => textOfPart(part, `${param}.content`)).join('')
    : given;
  if (role === 'assistant' && (content === '' || (content ?? null) === null)) {
    refuseToolCalls(message, param);
    return WITHOUT_TEXT;
  }
  return { ...message, role: role === 'developer' ? 'system' : role, content };
}

/** The messages that the model gets. Throws `invalid_request` if none has text. */
function messagesWithText(messages: readonly ChatMessage[]): ChatMessage[] {
  const spoken = messages.filter((message) => message !== WITHOUT_TEXT);
  if (spoken.length > 0) return spoken.map(({ role, content }) => ({ role, content }));
  throw new ServiceError('invalid_request', '`messages` must have at least one message with text.', {
    param: 'messages',
  });
}

/** The body of `POST /chat/completions`: the fields of OpenAI's API that it accepts, and this service's own. */
interface CompletionsBody extends ChatBody {
  max_completion_tokens?: number;
  stream?: boolean;
  stream_options?: { include_usage?: boolean | null };
  response_format?: { type?: 'text' | 'json_object' | 'json_schema' | null; json_schema?: unknown };
}

const MODEL_NAME_MAX = 256;
/** Maximum code points of `user` and of each `stop`. */
const SHORT_TEXT_MAX = 256;

const shortText = textUpTo(SHORT_TEXT_MAX);
const tokens = wholeNumberBetween(1, Number.MAX_SAFE_INTEGER);
const passedOn = 'Passed on to providers that speak OpenAI’s protocol.';

/** The texts that end the answer; undefined: none does. */
function stopOf(stop: string | (string | null)[]): string | string[] | undefined {
  if (!Array.isArray(stop)) return stop === '' ? undefined : stop;
  const texts = stop.filter((text): text is string => text !== null && text !== '');
  return texts.length === 0 ? undefined : texts;
}

/** A penalty of 0 is none. */
const penaltyOf = (penalty: number) => (penalty === 0 ? undefined : penalty);
const asSent = (value: unknown) => value;

const stopSchema = Joi.alternatives(shortText.allow(''), Joi.array().items(shortText.allow('', null)).max(4));

/** `read`: undefined is as good as left out. */
const passedFields: Readonly<Record<string, { rule: Joi.Schema; read: (value: never) => unknown }>> = {
  temperature: { rule: numberBetween(0, 2), read: asSent },
  top_p: { rule: numberBetween(0, 1), read: asSent },
  stop: { rule: stopSchema.description('Empty texts and an empty list stop nothing.'), read: stopOf },
  seed: { rule: Joi.number().integer(), read: asSent },
  user: { rule: shortText, read: asSent },
  frequency_penalty: { rule: numberBetween(-2, 2).description(passedOn), read: penaltyOf },
  presence_penalty: { rule: numberBetween(-2, 2).description(passedOn), read: penaltyOf },
  reasoning_effort: { rule: shortText.description(passedOn), read: asSent },
  verbosity: { rule: shortText.description(passedOn), read: asSent },
};
const PASSED_FIELDS = Object.entries(passedFields);

const fields = {
  ...chatRules,
  model: textUpTo(MODEL_NAME_MAX).description(
    "A tier, or a name that the administrator publishes; the tenant's default tier where it is left out.",
  ),
  ...Object.fromEntries(PASSED_FIELDS.map(([name, { rule }]) => [name, rule])),
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
  response_format: Joi.object({
    type: Joi.string().valid('text', 'json_object', 'json_schema').allow(null),
    json_schema: Joi.object()
      .unknown(true)
      .allow(null)
      .description('`name`, `schema` and perhaps `description` and `strict`, as in OpenAI’s structured outputs.'),
  }).unknown(true),
  json_mode: Joi.boolean().description('The same as `response_format` of the type `json_object`.'),
  n: Joi.valid(1),
  modalities: Joi.array().items(Joi.string().valid('text')).max(1),
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

/** Also where it is empty: callers of this route get what an answer has beside its text. */
function passedOf(body: CompletionsBody): Pick<ChatRequest, 'passed'> {
  const given: Readonly<Record<string, unknown>> = { ...body };
  const set = PASSED_FIELDS.flatMap(([name, { read }]) => {
    // The field's rule has checked the value.
    const value = given[name] === undefined ? undefined : read(given[name] as never);
    // Only what is set travels to the worker and makes one body differ from another.
    return value === undefined ? [] : [[name, value]];
  });
  return { passed: Object.fromEntries(set) as Record<string, unknown> };
}

function toRequest(body: CompletionsBody): ChatRequest {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? CHAT_LIMITS.maxTokensDefault;
  return {
    ...requestOf(body),
    messages: messagesWithText(body.messages),
    maxTokens: Math.min(maxTokens, CHAT_LIMITS.maxTokensMax),
    fitsTokens: true,
    jsonMode: body.json_mode === true || body.response_format?.type === 'json_object',
    ...passedOf(body),
    ...(body.response_format?.type === 'json_schema'
      ? { schema: readAnswerSchema(body.response_format.json_schema) }
      : {}),
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
