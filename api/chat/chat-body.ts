import Joi from 'joi';

import {
  CHAT_FIELDS,
  CHAT_LIMITS,
  CHAT_TIERS,
  ROLES,
  chatBodySchema,
  chatRules,
} from '../../shared/contracts/chat-request.ts';
import type { ChatBody, ChatRequest } from '../../shared/contracts/chat-request.ts';
import { checkAgainst, isRecord, wellFormedJson } from '../../shared/contracts/parse.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { OpenAiForm } from '../relay/sse.ts';

/** A field that asks for something this service cannot do. */
interface Unserved {
  /** The values that ask for nothing: frameworks send them although their user has set nothing. */
  accepted: Joi.Schema;
  /** The rest of the sentence that begins with the field's name: why not, and what to do instead. */
  say: string;
}
export type UnservedFields = Readonly<Record<string, Unserved>>;

const nothing = Joi.valid(null);
const emptyList = Joi.array().max(0).allow(null);
const noChoice = Joi.valid('none', 'auto', null);

const ELSEWHERE = 'is read by `POST /chat/completions` only;';
const SEND_THERE = `${ELSEWHERE} send the request there, or leave it out`;
const inTheirForm = (accepted: Joi.Schema): Unserved => ({ accepted, say: SEND_THERE });

/**
 * Ignoring one of these on the chat routes, which do not know OpenAI's names, would change what the answer is or means
 * without telling the caller, so the request fails. Any other unknown field is ignored and named in `X-Ignored-Fields`
 * (docs/spec.md#chat-request).
 */
const UNSERVED_ON_CHAT: UnservedFields = {
  tools: inTheirForm(emptyList),
  tool_choice: inTheirForm(noChoice),
  functions: inTheirForm(emptyList),
  function_call: inTheirForm(noChoice),
  audio: { accepted: nothing, say: 'is not supported: this service answers in text; leave it out' },
  n: { accepted: Joi.valid(1, null), say: 'must be 1: a request has one answer; send it again for another' },
  logprobs: inTheirForm(Joi.valid(false, null)),
  top_logprobs: inTheirForm(Joi.valid(0, null)),
  logit_bias: inTheirForm(Joi.object().max(0).allow(null)),
  prediction: inTheirForm(nothing),
  web_search_options: inTheirForm(nothing),
  top_k: inTheirForm(Joi.valid(0, -1, null)),
  min_p: inTheirForm(Joi.valid(0, null)),
  repetition_penalty: inTheirForm(Joi.valid(1, null)),
  structured_outputs: inTheirForm(nothing),
  guided_json: inTheirForm(nothing),
  guided_regex: inTheirForm(nothing),
  guided_choice: inTheirForm(nothing),
  guided_grammar: inTheirForm(nothing),
  grammar: inTheirForm(nothing),
  max_completion_tokens: { accepted: nothing, say: `${ELSEWHERE} here it is \`max_tokens\`` },
  response_format: {
    accepted: Joi.object({ type: Joi.valid('text', null) })
      .unknown(true)
      .allow(null),
    say: `${ELSEWHERE} here \`json_mode\` asks for a JSON object`,
  },
  stop: inTheirForm(Joi.alternatives(Joi.valid('', null), Joi.array().items(Joi.valid('', null)))),
};

export const UNSERVED_WITHOUT_STREAM: UnservedFields = {
  ...UNSERVED_ON_CHAT,
  stream: {
    accepted: Joi.valid(false, null),
    say: 'is not read here: the answer is complete; for a stream use `POST /chat/stream` or `POST /chat/completions`',
  },
};

/** The fields for the document. */
export function acceptedOf(fields: UnservedFields): Joi.SchemaMap {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { accepted, say }]) => [name, accepted.description(`\`${name}\` ${say}.`)]),
  );
}

/** Throws `invalid_request` for a field whose value asks for something. */
export function refuseUnserved(body: unknown, fields: UnservedFields): void {
  if (typeof body !== 'object' || body === null) return;
  for (const name in fields) {
    if (!(name in body)) continue;
    const { accepted, say } = fields[name] as Unserved;
    const value = (body as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || accepted.validate(value, { convert: false }).error === undefined) continue;
    throw new ServiceError('invalid_request', `\`${name}\` ${say}.`, { param: name });
  }
}

const BODY_FIELDS: ReadonlySet<string> = new Set(Object.keys(chatRules));
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content']);

export interface ParsedChatBody {
  request: ChatRequest;
  /** Names of fields that are not read, for the header `X-Ignored-Fields` (docs/spec.md#chat-request). */
  ignoredFields: string[];
  /** Absent: the answer has the form of the chat routes. */
  form?: OpenAiForm;
}

/** More names than fit into the header `X-Ignored-Fields`. */
const IGNORED_NAMES_MAX = 200;

/** The unknown field names of the body and of its messages, which the service does not read. */
export function ignoredIn(body: object, messages: readonly object[], known: ReadonlySet<string>): string[] {
  const ignored = new Set<string>();
  const note = (value: object, read: ReadonlySet<string>, prefix: string) => {
    for (const name of Object.keys(value)) {
      if (ignored.size >= IGNORED_NAMES_MAX) return;
      if (!read.has(name)) ignored.add(prefix + name);
    }
  };
  note(body, known, '');
  for (const message of messages) note(message, MESSAGE_FIELDS, 'messages[].');
  return [...ignored];
}

/** The named own fields of a JSON object; any other value is returned as it is. */
function pick(value: unknown, names: ReadonlySet<string>): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // The object's other fields, perhaps very many, are not visited.
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    [...names].filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]]),
  );
}

/**
 * The part of a body that the schema checks: the known fields, and at most one message more than is allowed. joi spends
 * microseconds on every message and every unknown field, and a body may have very many of both.
 */
function readableOf(input: unknown, known: ReadonlySet<string>): unknown {
  const body = pick(input, known);
  if (typeof body !== 'object' || body === null || !('messages' in body) || !Array.isArray(body.messages)) return body;
  const messages = body.messages.slice(0, CHAT_LIMITS.messagesMax + 1);
  return { ...body, messages: messages.map((message) => pick(message, MESSAGE_FIELDS)) };
}

const isBetween = (value: unknown, min: number, max: number) =>
  typeof value === 'number' && value >= min && value <= max;
const roles: ReadonlySet<unknown> = new Set(ROLES);
const tiers: ReadonlySet<unknown> = new Set(CHAT_TIERS);

function isPlainMessage(message: unknown): boolean {
  if (typeof message !== 'object' || message === null || !('role' in message) || !('content' in message)) return false;
  const { role, content } = message;
  return roles.has(role) && typeof content === 'string' && content !== '' && content.length <= CHAT_LIMITS.contentMax;
}

/** Checks of the fields that most bodies have. A known field that is missing here leaves its body to joi. */
const PLAIN_FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  messages: (value) =>
    Array.isArray(value) && isBetween(value.length, 1, CHAT_LIMITS.messagesMax) && value.every(isPlainMessage),
  model: (value) => tiers.has(value),
  max_tokens: (value) => Number.isInteger(value) && isBetween(value, 1, CHAT_LIMITS.maxTokensMax),
  stream: (value) => typeof value === 'boolean',
  temperature: (value) => isBetween(value, 0, 2),
  top_p: (value) => isBetween(value, 0, 1),
};

/**
 * True for a body that looks like most do: joi would accept it as it is, but takes ten times as long, a twentieth of a
 * complete answer (docs/benchmarks/performance-log.md).
 */
export function isPlainBody(input: unknown, known: ReadonlySet<string>): boolean {
  if (!isRecord(input) || (known.has('messages') && !Object.hasOwn(input, 'messages'))) return false;
  for (const name of known) if (Object.hasOwn(input, name) && PLAIN_FIELDS[name]?.(input[name]) !== true) return false;
  return true;
}

/** The result has the schema's type, and may still have unknown fields. */
export function checkReadable<T>(
  schema: Joi.ObjectSchema<T>,
  input: unknown,
  known: ReadonlySet<string>,
): asserts input is T {
  if (!isPlainBody(input, known)) checkAgainst(schema, readableOf(input, known));
}

/** The bodies as they may come over the wire, for the document. */
export const chatWireSchema = chatBodySchema.keys(acceptedOf(UNSERVED_WITHOUT_STREAM));
export const chatStreamWireSchema = chatBodySchema.keys(acceptedOf(UNSERVED_ON_CHAT));

/** The body of `POST /chat` and of a batch's line. Throws `invalid_request`, `message_too_long` or `too_many_messages`. */
export function parseChatBody(input: unknown): ParsedChatBody {
  return parseOwnBody(input, UNSERVED_WITHOUT_STREAM);
}

/** The body of `POST /chat/stream`; throws like `parseChatBody`. */
export function parseChatStreamBody(input: unknown): ParsedChatBody {
  return parseOwnBody(input, UNSERVED_ON_CHAT);
}

/** A checked body as it travels: with the fields of `chatFields` that it has, and the defaults of the others. */
export function requestOf(body: ChatBody): ChatRequest {
  const given = CHAT_FIELDS.flatMap(([name, { wire }]) => {
    const value = body[wire];
    if (value === undefined) return [];
    return [[name, name.endsWith('Json') ? wellFormedJson(value as object) : value]];
  });
  return {
    maxTokens: CHAT_LIMITS.maxTokensDefault,
    jsonMode: false,
    // The names are those of `ChatRequest`, and the schema has checked the values.
    ...(Object.fromEntries(given) as Partial<ChatRequest>),
    messages: body.messages.map(({ role, content }) => ({ role, content })),
  };
}

function parseOwnBody(input: unknown, unserved: UnservedFields): ParsedChatBody {
  refuseUnserved(input, unserved);
  checkReadable(chatBodySchema, input, BODY_FIELDS);
  const body = input;
  const request: ChatRequest = { ...requestOf(body), ...(body.max_tokens === undefined ? { fitsTokens: true } : {}) };
  return { request, ignoredFields: ignoredIn(body, body.messages, BODY_FIELDS) };
}
