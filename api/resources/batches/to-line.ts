import Joi from 'joi';

import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { CHAT_LIMITS, entityIdSchema, storedText } from '../../../shared/contracts/chat-request.ts';
import { parseChatBody } from '../../chat/chat-body.ts';
import type { ParsedChatBody } from '../../chat/chat-body.ts';
import { parseCompletionsBody } from '../../chat/completions-body.ts';
import { parseEmbeddingsBody } from '../../chat/inputs-endpoints.ts';
import { checkAgainst, isRecord } from '../../../shared/contracts/parse.ts';
import { toErrorDetail } from '../../../shared/errors/error-body.ts';
import type { ErrorDetail } from '../../../shared/errors/error-body.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { JSON_DEPTH_MAX, outlineOf, parseJson } from '../../http/json-body.ts';
import type { Piece, Place } from './scan-value.ts';

/** A request of a batch may be as large as a body of the chat route, but it is stored. */
const { bodyBytesMax, bodyValuesMax, keptBytesMax } = CHAT_LIMITS;

const TOO_LARGE_TO_KEEP = '`body` must not exceed 15 MiB in a batch, which is stored.';

/** Readers for the body of a line that names an endpoint: the form of OpenAI's batches, or our own paths. */
const READERS = new Map([
  ...['/v1/chat/completions', '/chat/completions', '/platform/v1/chat/completions'].map(
    (url) => [url, parseCompletionsLine] as const,
  ),
  ...['/v1/embeddings', '/embeddings', '/platform/v1/embeddings'].map((url) => [url, parseEmbeddingsBody] as const),
  ...['/chat', '/v1/chat', '/platform/v1/chat'].map((url) => [url, parseChatBody] as const),
]);

function parseCompletionsLine(body: unknown): ParsedChatBody {
  const parsed = parseCompletionsBody(body);
  const refuse = (param: string, say: string): never => {
    throw new ServiceError('invalid_request', `\`${param}\` ${say}.`, { param });
  };
  if (parsed.stream) refuse('stream', 'is not supported in a batch: the answer of a line is complete');
  const [ignored] = parsed.ignoredFields;
  return ignored === undefined
    ? parsed
    : refuse(ignored, 'is not read here, and a line has no header to say so; leave it out');
}

/** The fields of a batch's request around its `body`, which is checked like that of the endpoint. */
export const batchItemSchema = Joi.object({
  custom_id: storedText(BATCH_LIMITS.customIdMax)
    .required()
    .description("The caller's own name for the request, once in the batch."),
  method: Joi.string().valid('POST', null).messages({ 'any.only': '{{#label}} must be POST' }),
  url: Joi.string()
    .valid(...READERS.keys(), null)
    .messages({ 'any.only': '{{#label}} must be `/v1/chat/completions`, `/v1/embeddings` or `/chat`' })
    .description('The endpoint that reads `body`, as in batches of OpenAI; `/chat` where it is left out.'),
  body: Joi.object().unknown(true).required().description('As for the endpoint that `url` names.'),
})
  .unknown(true)
  .required();

/** The stored form of one request: the request to run, or the reason why it will not run. */
export type BatchLine = { customId: string | null } & (
  { requestJson: string; entityId?: string } | { error: ErrorDetail; entityId?: string }
);

/** Returns a caller's error as a value, because it concerns only one line of many. */
function attempt<T>(act: () => T): T | ServiceError {
  try {
    return act();
  } catch (fault) {
    if (fault instanceof ServiceError) return fault;
    throw fault;
  }
}

function fieldOf(item: object, name: string): unknown {
  return Object.hasOwn(item, name) ? (item as Readonly<Record<string, unknown>>)[name] : undefined;
}

interface Item {
  customId: string;
  url: string | null | undefined;
  body: unknown;
}

function parseItem(item: object): Item {
  // joi gets only these fields: the caller may have sent very many others.
  const [customId, method, url, body] = ['custom_id', 'method', 'url', 'body'].map((name) => fieldOf(item, name));
  checkAgainst(batchItemSchema, { custom_id: customId, method, url, body });
  // The schema has just checked both.
  return { customId: customId as string, url: url as string | null | undefined, body };
}

/** The entity of a refused request: its custom_id may name the entity, which can be deleted. */
function entityOf(body: unknown): { entityId?: string } {
  const entityId = typeof body === 'object' && body !== null ? fieldOf(body, 'entity_id') : undefined;
  // The schema accepts only text.
  return entityId === undefined || entityIdSchema.validate(entityId).error ? {} : { entityId: entityId as string };
}

/** The error as the sender of the whole item sees it: with fields below `body`. */
function below({ code, message, param }: ServiceError): ErrorDetail {
  if (param === undefined) return { code, message, param: 'body' };
  return { code, message: message.replace(`\`${param}\``, `\`body.${param}\``), param: `body.${param}` };
}

function refused({ name, param }: Place, rule: string): BatchLine {
  return { customId: null, error: toErrorDetail({ code: 'invalid_request', message: `${name} ${rule}.`, param }) };
}

function readItem(item: object): BatchLine {
  const parsed = attempt(() => parseItem(item));
  if (parsed instanceof ServiceError) {
    // An invalid body does not make the name invalid.
    const customId = parsed.param === 'custom_id' ? null : (fieldOf(item, 'custom_id') as string);
    return { customId, error: toErrorDetail(parsed) };
  }
  const { customId, url, body } = parsed;
  const read = READERS.get(url ?? '') ?? parseChatBody;
  const chat = attempt(() => read(body));
  if (chat instanceof ServiceError) return { customId, error: below(chat), ...entityOf(body) };
  const { request } = chat;
  const entity = request.entityId === undefined ? {} : { entityId: request.entityId };
  const requestJson = JSON.stringify(request);
  if (Buffer.byteLength(requestJson) <= keptBytesMax) return { customId, requestJson, ...entity };
  return { customId, error: below(new ServiceError('invalid_request', TOO_LARGE_TO_KEEP)), ...entity };
}

/** A request that is too much to read keeps its name, and the entity that the name may be about. */
function named(line: BatchLine, json: Buffer): BatchLine {
  const { value } = { value: undefined, ...parseJson(outlineOf(json), bodyValuesMax) };
  if (!isRecord(value)) return line;
  const { customId, entityId } = readItem(value);
  return { ...line, customId, ...(entityId === undefined ? {} : { entityId }) };
}

/** A request's errors go into its own result. Throws `invalid_request` on bytes that make the body unreadable. */
export function toLine({ place, json }: Piece, isWhole: boolean): BatchLine {
  if (json === undefined) return refused(place, `must not exceed ${bodyBytesMax} bytes`);
  const parsed = parseJson(json, bodyValuesMax);
  switch (parsed.kind) {
    case 'value':
      return isRecord(parsed.value) ? readItem(parsed.value) : refused(place, 'must be a JSON object');
    case 'too many values':
      return named(refused(place, `must not hold more than ${bodyValuesMax} values`), json);
    case 'too deep':
      return named(refused(place, `must not be nested deeper than ${JSON_DEPTH_MAX} levels`), json);
    case 'not json':
      if (!isWhole) return refused(place, 'is not valid JSON');
      throw new ServiceError('invalid_request', `${place.name} is not valid JSON, nor is the request body.`);
    case 'not utf-8':
      throw new ServiceError('invalid_request', `${place.name} is not in UTF-8.`);
  }
}
