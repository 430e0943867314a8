import Joi from 'joi';

import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import { VECTOR_BYTES_MAX, bytesOfVector, textUpTo, wholeNumberBetween } from '../../shared/contracts/chat-request.ts';
import { checkAgainst, isRecord } from '../../shared/contracts/parse.ts';
import { BYTES_PER_TOKEN } from '../../shared/domain/pricing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import { defineEndpoint, json } from '../contract/endpoint.ts';
import { ignoredIn } from './chat-body.ts';
import type { ParsedChatBody } from './chat-body.ts';
import type { ChatDeps } from './chat-endpoints.ts';
import { COMPLETION_EXAMPLE, embeddingListSchema, moderationSchema } from './completion-schemas.ts';

/**
 * Embeddings and moderation ride the path of a chat request: each input is a message, and the request's `task` says what
 * is asked for (docs/spec.md#embeddings). So limits, idempotency, retention, deletion and batches hold for them as well.
 */

/** OpenAI's own bounds. */
const INPUTS_MAX = 2_048;
const INPUT_TOKENS_MAX = 300_000;
/** The last token that stands for text in cl100k_base, the encoding of OpenAI's models for embeddings. */
const TOKEN_MAX = 100_255;
const DIMENSIONS_MAX = 16_384;
const MODEL_NAME_MAX = 256;

/** In the worker, each verdict is a call of its own where the moderation is a server's. */
const MODERATED_MAX = 32;

const modelSchema = textUpTo(MODEL_NAME_MAX);

interface EmbeddingsBody {
  model?: string | null;
  encoding_format?: 'float' | 'base64' | null;
  dimensions?: number | null;
  user?: string | null;
}

const inputText = Joi.string();
const tokens = Joi.array().items(wholeNumberBetween(0, TOKEN_MAX)).min(1);
const otherFields = {
  model: modelSchema.allow(null).description('`embedding`, or a published name that leads there.'),
  encoding_format: Joi.string()
    .valid('float', 'base64', null)
    .description('Of the vectors: numbers, or little-endian 32-bit floats as base64.')
    .meta({ default: 'float' }),
  dimensions: wholeNumberBetween(1, DIMENSIONS_MAX)
    .allow(null)
    .description('Of each vector, where the model can shorten them.'),
  user: textUpTo(256).allow('', null).description('A provider reads a keyed hash of tenant and user.'),
};
const otherFieldsSchema = Joi.object<EmbeddingsBody>(otherFields).unknown(true).required();

/** For the document. `inputsOf` checks inputs: joi would take seconds for 300,000 tokens. */
const embeddingsWireSchema = Joi.object({
  input: Joi.alternatives(
    inputText,
    Joi.array().items(inputText).min(1).max(INPUTS_MAX),
    tokens,
    Joi.array().items(tokens).min(1).max(INPUTS_MAX),
  )
    .required()
    .description(`1 to ${INPUTS_MAX} texts, or lists of tokens of cl100k_base, of ${INPUT_TOKENS_MAX} tokens in all.`),
  ...otherFields,
})
  .unknown(true)
  .required();

function refuse(rule: string, param = 'input'): never {
  throw new ServiceError('invalid_request', `\`${param}\` ${rule}.`, { param });
}

const isToken = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= TOKEN_MAX;

/** Texts, each input as one; lists of tokens as JSON. */
interface Inputs {
  texts: string[];
  isTokens: boolean;
}

function tokensOf(input: unknown, param: string): string {
  if (!Array.isArray(input) || input.length === 0) refuse('must be a list of tokens, like the inputs before it', param);
  const wrong = input.findIndex((token) => !isToken(token));
  if (wrong >= 0) refuse(`must be a whole number from 0 to ${TOKEN_MAX}: a token of cl100k_base`, `${param}[${wrong}]`);
  return JSON.stringify(input);
}

function textOf(input: unknown, param: string): string {
  if (typeof input !== 'string') refuse('must be a text, like the inputs before it', param);
  return input === '' ? refuse('must not be empty', param) : input;
}

function inputsOf(input: unknown, inputsMax: number): Inputs {
  if (typeof input === 'string') return { texts: [textOf(input, 'input')], isTokens: false };
  if (!Array.isArray(input) || input.length === 0) refuse('is required: a text, or a list of them');
  if (typeof input[0] === 'number') return { texts: [tokensOf(input, 'input')], isTokens: true };
  if (input.length > inputsMax) refuse(`must not have more than ${inputsMax} items`);
  const isTokens = Array.isArray(input[0]);
  const read = isTokens ? tokensOf : textOf;
  return { texts: input.map((item: unknown, index) => read(item, `input[${index}]`)), isTokens };
}

const countTokens = ({ texts, isTokens }: Inputs) =>
  isTokens
    ? texts.reduce((sum, list) => sum + list.split(',').length, 0)
    : Math.ceil(texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0) / BYTES_PER_TOKEN);

const requestOf = (texts: readonly string[]): ChatRequest => ({
  messages: texts.map((content) => ({ role: 'user', content })),
  maxTokens: 0,
  jsonMode: false,
});

/** Throws `invalid_request`. */
export function parseEmbeddingsBody(body: unknown): ParsedChatBody {
  const { input, ...others } = isRecord(body) ? body : {};
  checkAgainst(otherFieldsSchema, isRecord(body) ? others : body);
  const { model, encoding_format: encoding, dimensions, user } = others as EmbeddingsBody;
  const inputs = inputsOf(input, INPUTS_MAX);
  const count = countTokens(inputs);
  if (count > INPUT_TOKENS_MAX)
    refuse(`must not have more than ${INPUT_TOKENS_MAX} tokens in all, and has about ${count}`);
  const inputsMax = Math.floor(VECTOR_BYTES_MAX / bytesOfVector(dimensions ?? 1));
  if (inputs.texts.length > inputsMax) refuse(`must not have more than ${inputsMax} items of so many dimensions`);
  return {
    request: {
      ...requestOf(inputs.texts),
      model: model ?? 'embedding',
      task: {
        kind: 'embedding',
        encoding: encoding ?? 'float',
        ...(typeof dimensions === 'number' ? { dimensions } : {}),
        ...(inputs.isTokens ? { isTokens: true } : {}),
      },
      ...(user ? { passed: { user } } : {}),
    },
    ignoredFields: ignoredIn(others, [], new Set(Object.keys(otherFields))),
  };
}

const moderationModel = modelSchema
  .allow(null)
  .description('Read by nobody: the administrator has chosen the moderator.');
const textPart = Joi.object({ type: Joi.string().valid('text').required(), text: inputText.required() }).unknown(true);
const moderationsSchema = Joi.object({
  input: Joi.alternatives(
    inputText,
    Joi.array().items(inputText).min(1).max(MODERATED_MAX),
    Joi.array().items(textPart).min(1),
  )
    .required()
    .description(`A text, 1 to ${MODERATED_MAX} texts, or one text in parts.`),
  model: moderationModel,
})
  .unknown(true)
  .required();

function partOf(part: unknown, index: number): string {
  const { type, text: content } = isRecord(part) ? part : {};
  if (type === 'text' && typeof content === 'string') return content;
  return refuse('must be a part of type text: other parts are not moderated', `input[${index}]`);
}

/** Throws `invalid_request`. */
function parseModerationsBody(body: unknown): ParsedChatBody {
  const given: Record<string, unknown> = isRecord(body) ? body : {};
  checkAgainst(Joi.object({ model: moderationModel }).unknown(true).required(), body);
  const { input } = given;
  const isParts = Array.isArray(input) && isRecord(input[0]);
  const { texts, isTokens } = inputsOf(isParts ? input.map(partOf).join('') : input, MODERATED_MAX);
  if (isTokens) refuse('must be a text, or a list of them');
  const asked = requestOf(texts);
  // Moderation reads them as one text and as lines.
  if (isParts) for (const message of asked.messages) message.sent = { content: input };
  return {
    request: { ...asked, model: 'moderation', task: { kind: 'moderation' } },
    ignoredFields: ignoredIn(given, [], new Set(['input', 'model'])),
  };
}

const createEmbeddings = defineEndpoint({
  method: 'POST',
  path: '/embeddings',
  scopes: ['embeddings'],
  counts: 'admission',
  tag: 'Embeddings',
  summary: 'Create embeddings',
  description:
    "In the form of OpenAI's endpoint; the tier `embedding` serves it. Inputs are moderated, metered and limited as the messages of a chat are; an answer has no tokens of its own.",
  headers: ['X-Stainless-Retry-Count'],
  body: { kind: 'inputs', name: 'EmbeddingsBody', schema: embeddingsWireSchema, read: parseEmbeddingsBody },
  answers: { 200: json('A vector for each input, in their order.', embeddingListSchema, ['X-Ignored-Fields']) },
  errors: ['model_not_found', 'context_length_exceeded'],
  examples: {
    two: {
      body: { model: 'embedding', input: ['A noun names a thing.', 'A verb names an action.'], dimensions: 3 },
      status: 200,
      answer: {
        object: 'list',
        data: [
          { object: 'embedding', index: 0, embedding: [0.577, 0.577, 0.577] },
          { object: 'embedding', index: 1, embedding: [-0.577, 0.577, 0.577] },
        ],
        model: 'embedding',
        usage: { prompt_tokens: 12, total_tokens: 12 },
      },
    },
  },
  handle: ({ req, res, body }, { respond }: ChatDeps) => respond.complete(req, res, body, 'embeddings'),
});

const createModeration = defineEndpoint({
  method: 'POST',
  path: '/moderations',
  scopes: ['chat'],
  counts: 'admission',
  tag: 'Moderation',
  summary: 'Moderate texts',
  description:
    "The verdict that the service's own moderation gives on a message, by the tenant's settings, in the form of OpenAI's endpoint. It costs no credits and counts as a request.",
  headers: ['X-Stainless-Retry-Count'],
  body: { kind: 'json', name: 'ModerationsBody', schema: moderationsSchema, read: parseModerationsBody },
  answers: { 200: json('A verdict for each input, in their order.', moderationSchema, ['X-Ignored-Fields']) },
  examples: {
    one: {
      body: { input: 'What is a noun?' },
      status: 200,
      answer: {
        id: COMPLETION_EXAMPLE.id,
        model: 'local',
        results: [{ flagged: false, categories: { violence: false }, category_scores: { violence: 0 } }],
      },
    },
  },
  handle: ({ req, res, body }, { respond }: ChatDeps) => respond.complete(req, res, body, 'moderations'),
});

/** Endpoints beside chats (docs/spec.md#embeddings). */
export const inputsEndpoints = { createEmbeddings, createModeration };
