import Joi from 'joi';

import { ROLES } from '../../shared/contracts/chat-request.ts';
import type { Capability, ChatMessage, Role } from '../../shared/contracts/chat-request.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { isPrivateHost } from '../../shared/http/public-address.ts';

/** Messages in OpenAI's form, which `POST /chat/completions` reads: parts, calls of tools and their results. */

/** An agent's conversation may have as many; the body's size bounds the text (docs/spec.md#openais-client). */
const MESSAGES_MAX = 2_048;
const CALLS_MAX = 512;

type Json = Readonly<Record<string, unknown>>;

export function refuse(param: string, rule: string): never {
  throw new ServiceError('invalid_request', `\`${param}\` ${rule}.`, { param });
}

const nonEmptyText = Joi.string();
const partSchema = Joi.object({
  type: Joi.string().valid('text', 'refusal', 'image_url', 'input_audio', 'file').required(),
  text: Joi.string().allow('', null),
  refusal: Joi.string().allow('', null),
  image_url: Joi.object({
    url: nonEmptyText.required().description('An http or https URL, which only the provider fetches, or a data URL.'),
    detail: Joi.string().allow(null),
  }).unknown(true),
  input_audio: Joi.object({ data: nonEmptyText.required(), format: nonEmptyText.required() }).unknown(true),
  file: Joi.object({
    file_data: nonEmptyText.required().description('A data URL.'),
    filename: Joi.string().allow('', null),
  }).unknown(true),
}).unknown(true);
const anyContent = Joi.alternatives(Joi.string().allow('', null), Joi.array().items(partSchema));

const callSchema = Joi.object({
  id: nonEmptyText.required(),
  type: Joi.string().valid('function', 'custom', null),
  function: Joi.object({ name: nonEmptyText.required(), arguments: Joi.string().allow('').required() }).unknown(true),
  custom: Joi.object({ name: nonEmptyText.required(), input: Joi.string().allow('').required() }).unknown(true),
}).unknown(true);

const spoken = Joi.object({
  role: Joi.string()
    .valid('user', 'system', 'developer')
    .description('`developer` is another name for `system`.')
    .required(),
  content: anyContent
    .required()
    .description(
      'Text, or parts; those of users may be images, sound and files, where a model of the tier takes them.',
    ),
}).unknown(true);
const answered = Joi.object({
  role: Joi.string().valid('assistant').required(),
  content: anyContent.description('An answer without text and calls is left out of the conversation.'),
  tool_calls: Joi.array().items(callSchema).max(CALLS_MAX).allow(null),
  function_call: Joi.valid(null),
  audio: Joi.valid(null),
}).unknown(true);
const result = Joi.object({
  role: Joi.string().valid('tool').required(),
  tool_call_id: nonEmptyText.required().description('Of a call in the last message of the assistant.'),
  content: anyContent.required().description('Text, or parts of text.'),
}).unknown(true);

/** The messages for the document, which cannot say how they must follow each other. */
export const messagesSchema = Joi.array()
  .max(MESSAGES_MAX)
  .min(1)
  .items(spoken, answered, result)
  .description('The conversation, oldest message first. At least one message has text.')
  .required();

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
/** Clients print fields that their user has not set as null, and lists that have nothing as empty. */
const isUnset = (value: unknown) => (value ?? null) === null || (Array.isArray(value) && value.length === 0);

interface Conversation {
  needs: Set<Capability>;
  /** The ids of the last message's calls of tools; and those of them that have no result yet, with the call's place. */
  calls: Set<string>;
  open: Map<string, string>;
}

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+=-]+)?;base64,./i;

function checkImage({ image_url: image }: Json, param: string): void {
  if (!isRecord(image)) refuse(`${param}.image_url`, 'must be an object with `url`');
  const { url, detail } = image;
  const at = `${param}.image_url.url`;
  if (!isUnset(detail) && typeof detail !== 'string') refuse(`${param}.image_url.detail`, 'must be a string');
  if (typeof url === 'string' && DATA_URL.test(url)) return;
  const host = typeof url === 'string' && /^https?:/i.test(url) ? URL.parse(url)?.hostname : undefined;
  if (host === undefined) refuse(at, 'must be an http or https URL, or `data:image/…;base64,…`');
  // A provider in the operator's own network would fetch it from there.
  if (isPrivateHost(host)) refuse(at, 'must be on a public host; send the image itself as a data URL');
}

function checkSound({ input_audio: sound }: Json, param: string): void {
  const { data, format } = isRecord(sound) ? sound : {};
  if (!isText(data) || !isText(format))
    refuse(`${param}.input_audio`, 'must be an object with `data`, in base64, and `format`, such as `wav`');
}

function checkFile({ file }: Json, param: string): void {
  const { file_data: data, file_id: id } = isRecord(file) ? file : {};
  // The provider's files are those of the operator's account, which all tenants share.
  if (!isUnset(id)) refuse(`${param}.file.file_id`, 'is not supported: files are not kept; send `file_data`');
  if (!isText(data) || !DATA_URL.test(data)) refuse(`${param}.file.file_data`, 'must be the file as a data URL');
}

const MEDIA: Readonly<Record<string, { needs: Capability; check: (part: Json, param: string) => void }>> = {
  image_url: { needs: 'images', check: checkImage },
  input_audio: { needs: 'audio', check: checkSound },
  file: { needs: 'files', check: checkFile },
};

/** Fields of parts that a target might read whatever the `type` is, and moderation would not. */
const KINDS: readonly string[] = ['text', 'refusal', ...Object.keys(MEDIA)];

/** The text of a part; undefined: it is of another kind. */
function readPart(part: unknown, role: unknown, param: string, { needs }: Conversation): string | undefined {
  if (!isRecord(part)) refuse(param, 'must be an object with `type`');
  const { type } = part;
  if (type === 'text' || (type === 'refusal' && role === 'assistant')) {
    const text = part[type] ?? '';
    return typeof text === 'string' ? text : refuse(`${param}.${type}`, 'must be a string');
  }
  const media = typeof type === 'string' && Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined;
  if (media === undefined) refuse(`${param}.type`, 'must be one of [text, image_url, input_audio, file]');
  if (role !== 'user') refuse(`${param}.type`, 'must be text: only messages of the user have other parts');
  media.check(part, param);
  needs.add(media.needs);
  return undefined;
}

/** The text of a content, and whether it is all that the content says. */
function readContent(message: Json, param: string, conversation: Conversation): { text: string; isAll: boolean } {
  const { role, content } = message;
  if (content === undefined && role !== 'assistant') refuse(`${param}.content`, 'is required');
  if (typeof content === 'string') return { text: content, isAll: true };
  if (content === null || content === undefined) return { text: '', isAll: true };
  if (!Array.isArray(content)) refuse(`${param}.content`, 'must be a string or a list of parts');
  let text = '';
  let isAll = true;
  for (const [index, part] of content.entries()) {
    const read = readPart(part, role, `${param}.content[${index}]`, conversation);
    text += read ?? '';
    const { type, ...fields } = part as Json;
    const others = Object.keys(fields).filter((name) => name !== type && !isUnset(fields[name]));
    const stray = others.find((name) => KINDS.includes(name) && fields[name] !== '');
    if (stray !== undefined) refuse(`${param}.content[${index}].${stray}`, 'belongs to a part of another type');
    isAll &&= read !== undefined && others.length === 0;
  }
  return { text, isAll };
}

function readCall(call: unknown, param: string, { calls, open }: Conversation): void {
  if (!isRecord(call)) refuse(param, 'must be an object');
  const { id, type } = call;
  if (!isText(id)) refuse(`${param}.id`, 'is required');
  const kind = type ?? 'function';
  if (kind !== 'function' && kind !== 'custom') refuse(`${param}.type`, 'must be one of [function, custom]');
  const said = call[kind];
  const [given, other] = kind === 'function' ? ['arguments', 'custom'] : ['input', 'function'];
  if (!isUnset(call[other])) refuse(`${param}.${other}`, 'belongs to a call of another type');
  if (!isRecord(said)) refuse(`${param}.${kind}`, `must be an object with \`name\` and \`${given}\``);
  if (!isText(said['name'])) refuse(`${param}.${kind}.name`, 'is required');
  if (typeof said[given] !== 'string') refuse(`${param}.${kind}.${given}`, 'must be a string');
  calls.add(id);
  open.set(id, param);
}

function readCalls(message: Json, param: string, conversation: Conversation): boolean {
  const { tool_calls: calls, function_call: call, audio } = message;
  if (!isUnset(call)) refuse(`${param}.function_call`, 'is the older form of `tool_calls`; send `tool_calls`');
  if (!isUnset(audio)) refuse(`${param}.audio`, 'is not supported: answers with sound are not kept; send their text');
  if (isUnset(calls)) return false;
  if (!Array.isArray(calls)) refuse(`${param}.tool_calls`, 'must be an array');
  if (calls.length > CALLS_MAX) refuse(`${param}.tool_calls`, `must not have more than ${CALLS_MAX} items`);
  for (const [index, each] of calls.entries()) readCall(each, `${param}.tool_calls[${index}]`, conversation);
  conversation.needs.add('tools');
  return true;
}

function readResult(message: Json, param: string, { calls, open }: Conversation): void {
  const { tool_call_id: id } = message;
  if (!isText(id)) refuse(`${param}.tool_call_id`, 'is required');
  if (!calls.has(id))
    refuse(
      `${param}.tool_call_id`,
      'must be the id of one of the `tool_calls` in the message of the assistant that stands before the results',
    );
  open.delete(id);
}

/** Models refuse a conversation that goes on without the results. */
function assertAnswered({ open }: Conversation): void {
  for (const [id, param] of open)
    refuse(param, `must be followed by a message of role \`tool\` with the \`tool_call_id\` \`${id}\``);
}

const ALL_ROLES = [...ROLES, 'developer', 'tool'];
const READ = new Set(['role', 'content', 'refusal']);

function roleOf({ role }: Json, param: string): Role | 'tool' {
  if (role === 'function') refuse(`${param}.role`, 'must be `tool`: `function` is its older form');
  if (role === undefined) refuse(`${param}.role`, 'is required');
  if (typeof role !== 'string' || !ALL_ROLES.includes(role))
    refuse(`${param}.role`, `must be one of [${ALL_ROLES.join(', ')}]`);
  return role === 'developer' ? 'system' : (role as Role | 'tool');
}

/** Undefined: an answer or an instruction that says nothing, which the conversation goes without. A user's may say nothing. */
function readMessage(message: unknown, param: string, conversation: Conversation): ChatMessage | undefined {
  if (!isRecord(message)) refuse(param, 'must be of type object');
  const role = roleOf(message, param);
  if (role === 'tool') readResult(message, param, conversation);
  else {
    assertAnswered(conversation);
    conversation.calls.clear();
  }
  const hasCalls = role === 'assistant' && readCalls(message, param, conversation);
  const { text, isAll } = readContent(message, param, conversation);
  const { refusal } = message;
  const content = text === '' && role === 'assistant' && isText(refusal) ? refusal : text;
  if (content === '' && isAll && (role === 'system' || (role === 'assistant' && !hasCalls))) return undefined;
  const others = Object.entries(message).filter(([name, value]) => !READ.has(name) && !isUnset(value));
  if (isAll && others.length === 0) return { role, content };
  const sent = { role, content: isAll ? (hasCalls && content === '' ? null : content) : message['content'] };
  return { role, content, sent: { ...sent, ...Object.fromEntries(others) } };
}

const roles: ReadonlySet<unknown> = new Set(ROLES);

/** Most messages are: reading them any further would take ten times as long. */
function isPlain(message: unknown): message is ChatMessage {
  if (typeof message !== 'object' || message === null) return false;
  const { role, content } = message as Json;
  return roles.has(role) && isText(content) && Object.keys(message).length === 2;
}

/** The conversation that the model gets, and what a model needs for it. Throws `invalid_request` or `too_many_messages`. */
export function readMessages(value: unknown): { messages: ChatMessage[]; needs: Set<Capability> } {
  const param = 'messages';
  if (value === undefined) refuse(param, 'is required');
  if (!Array.isArray(value)) refuse(param, 'must be an array');
  if (value.length === 0) refuse(param, 'must contain at least 1 item');
  if (value.length > MESSAGES_MAX)
    throw new ServiceError('too_many_messages', `\`${param}\` must not have more than ${MESSAGES_MAX} items.`, {
      param,
    });
  const conversation: Conversation = { needs: new Set(), calls: new Set(), open: new Map() };
  const messages = value.flatMap((message: unknown, index) => {
    if (conversation.open.size === 0 && isPlain(message)) {
      conversation.calls.clear();
      return { role: message.role, content: message.content };
    }
    return readMessage(message, `${param}[${index}]`, conversation) ?? [];
  });
  assertAnswered(conversation);
  if (messages.some(({ content, sent }) => content !== '' || sent !== undefined))
    return { messages, needs: conversation.needs };
  throw new ServiceError('invalid_request', '`messages` must have at least one message with text.', { param });
}
