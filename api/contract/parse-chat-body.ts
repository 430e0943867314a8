import type Joi from 'joi';

import { CHAT_LIMITS, chatBodySchema } from '../../shared/contracts/chat-request.ts';
import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import { checkAgainst } from '../../shared/contracts/parse.ts';
import { wellFormedJson } from '../../shared/contracts/well-formed-json.ts';
import type { OpenAiForm } from '../relay/answer.ts';
import { acceptedOf, refuseUnserved, UNSERVED_ON_CHAT, UNSERVED_WITHOUT_STREAM } from './unserved-fields.ts';
import type { UnservedFields } from './unserved-fields.ts';

const BODY_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'max_tokens',
  'entity_id',
  'subject',
  'grade',
  'metadata',
  'json_mode',
]);
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content']);

export interface ParsedChatBody {
  request: ChatRequest;
  /** Names of unknown fields, for the header `X-Ignored-Fields` (docs/spec.md#chat-request). */
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

/** Checks a body against its schema. The result has the schema's type, and may still have unknown fields. */
export function checkReadable<T>(
  schema: Joi.ObjectSchema<T>,
  input: unknown,
  known: ReadonlySet<string>,
): asserts input is T {
  checkAgainst(schema, readableOf(input, known));
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

function parseOwnBody(input: unknown, unserved: UnservedFields): ParsedChatBody {
  refuseUnserved(input, unserved);
  checkReadable(chatBodySchema, input, BODY_FIELDS);
  const body = input;
  const request: ChatRequest = {
    messages: body.messages.map(({ role, content }) => ({ role, content })),
    maxTokens: body.max_tokens ?? CHAT_LIMITS.maxTokensDefault,
    ...(body.max_tokens === undefined ? { fitsTokens: true } : {}),
    jsonMode: body.json_mode ?? false,
    ...(body.model === undefined ? {} : { model: body.model }),
    ...(body.entity_id === undefined ? {} : { entityId: body.entity_id }),
    ...(body.subject === undefined ? {} : { subject: body.subject }),
    ...(body.grade === undefined ? {} : { grade: body.grade }),
    ...(body.metadata === undefined ? {} : { metadataJson: wellFormedJson(body.metadata) }),
  };
  return { request, ignoredFields: ignoredIn(body, body.messages, BODY_FIELDS) };
}
