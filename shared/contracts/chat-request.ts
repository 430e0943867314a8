import Joi from 'joi';

/** docs/spec.md#service. */
export const CHAT_TIERS = ['mobius', 'oloid'] as const;
/** An administrator routes providers to these. */
export const ROUTED_TIERS = [...CHAT_TIERS, 'embedding'] as const;
/** `moderation` is for its verdicts, which no provider gives and nobody pays for. */
export const TIERS = [...ROUTED_TIERS, 'moderation'] as const;
export type RoutedTier = (typeof ROUTED_TIERS)[number];
export type Tier = (typeof TIERS)[number];

export const ROLES = ['user', 'assistant', 'system'] as const;
export type Role = (typeof ROLES)[number];

export interface ChatMessage {
  /** `tool` comes only from `POST /chat/completions`. */
  role: Role | 'tool';
  /** '' where the message has none. `textOf` (message-text.ts) has all else that a model reads. */
  content: string;
  /** OpenAI's form, only where it says more than role and text: parts, calls of tools, a name. */
  sent?: Readonly<Record<string, unknown>>;
}

/**
 * Abilities that a request may need of a model beyond text; targets say which they have (`Target.capabilities`).
 * `openai_fields`: those fields of OpenAI's protocol that change what the answer is (`DECISIVE_FIELDS`).
 */
export const CAPABILITIES = [
  'tools',
  'custom_tools',
  'json_schema',
  'images',
  'audio',
  'files',
  'logprobs',
  'openai_fields',
] as const;
export type Capability = (typeof CAPABILITIES)[number];

export const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Without these fields the caller would get another answer and not know it. */
export const DECISIVE_FIELDS = words(
  'logit_bias web_search_options structured_outputs grammar guided_json guided_regex guided_choice guided_grammar',
);

/** A JSON schema for the answer (docs/spec.md#structured-output), as OpenAI's `json_schema` has it. */
export interface AnswerSchema {
  name: string;
  description?: string;
  schema: Readonly<Record<string, unknown>>;
  strict: boolean;
}

/** Other tasks over the path of a chat request; each message is one input. */
export type Task =
  | {
      kind: 'embedding';
      /** Of the vectors in the answer. */
      encoding: 'float' | 'base64';
      dimensions?: number;
      /** Each input is JSON, a list of cl100k_base tokens, which the worker reads as text. */
      isTokens?: true;
    }
  | { kind: 'moderation' };

/** Limits all vectors of an answer, as base64: it fits into one MongoDB document, 1,000 vectors of 1,536 dimensions. */
export const VECTOR_BYTES_MAX = 10 * 1024 * 1024;

/** Base64 of 32-bit floats, with the space in front of it. */
export const bytesOfVector = (dimensions: number) => Math.ceil((dimensions * 4) / 3) * 4 + 1;

/** Travels, validated, from the ingress to the worker. */
export interface ChatRequest {
  messages: ChatMessage[];
  /** A tier, or a name that an administrator publishes. Absent: the tenant's default tier. */
  model?: string;
  /** Absent: a chat. */
  task?: Task;
  maxTokens: number;
  /** `maxTokens` may become what the model's window leaves: the caller named no limit, or has OpenAI's client. */
  fitsTokens?: boolean;
  /** OpenAI's client named no limit: `maxTokens` becomes what the target is said to make. */
  isUnbounded?: boolean;
  entityId?: string;
  subject?: string;
  grade?: string;
  /** The caller's object as JSON text: it is echoed, never read. */
  metadataJson?: string;
  jsonMode: boolean;
  /** The answer is JSON of this schema, which was checked at admission. */
  schema?: AnswerSchema;
  /**
   * Fields of OpenAI's protocol by their wire names: a provider of that protocol gets them unchanged. Absent for other
   * routes' callers, who get only an answer's text.
   */
  passed?: Readonly<Record<string, unknown>>;
  /** A target must have these to serve the request. Absent: nothing beyond text. */
  needs?: readonly Capability[];
}

/** docs/spec.md#chat-request; lengths are in code points (docs/spec.md#conventions). */
export const CHAT_LIMITS = {
  messagesMax: 100,
  contentMax: 16_000,
  maxTokensMax: 16_384,
  maxTokensDefault: 4_096,
  entityIdMax: 256,
  contextTextMax: 1_000,
  metadataBytesMax: 16_384,
  metadataDepthMax: 5,
  /** 100 messages of 16,000 code points, escaped. */
  bodyBytesMax: 20 * 1024 * 1024,
  /** MongoDB's documents have 16 MB, and it stores such a request. */
  keptBytesMax: 15 * 1024 * 1024,
  /** A million small values would stop the process for seconds. */
  bodyValuesMax: 100_000,
} as const;

/** An answer's reader that assigned it would replace an object's prototype. Callers may use any other name. */
const POISONED_KEY = '__proto__';

/** True when `text` has more than `max` code points. Counts only if the UTF-16 length does not settle it. */
function exceedsCodePoints(text: string, max: number): boolean {
  if (text.length <= max) return false;
  if (text.length > max * 2) return true;
  let count = 0;
  for (let index = 0; index < text.length; count += 1) index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  return count > max;
}

/** Counts code points, as JSON Schema does; joi's own `max` counts UTF-16 units. */
export const textUpTo = (max: number) =>
  Joi.string()
    .custom((value: string, helpers) =>
      exceedsCodePoints(value, max) ? helpers.error('text.tooLong', { limit: max }) : value,
    )
    .meta({ maxLength: max });

/**
 * For text in MongoDB, whose UTF-8 turns every lone surrogate into one replacement character: two names would become
 * one, and texts would come back different from what the response to their creation showed.
 */
const wellFormed: Joi.CustomValidator<string> = (value, helpers) =>
  value.isWellFormed() ? value : helpers.error('text.malformed');
const WELL_FORMED_RULE = 'It must not have half a surrogate pair.';

export const storedText = (max: number) => textUpTo(max).custom(wellFormed).meta({ rule: WELL_FORMED_RULE });

type MetadataFault = 'metadata.tooDeep' | 'metadata.poisoned' | 'metadata.infinite' | 'metadata.tooLarge' | undefined;

/**
 * `room` counts down the values that can still fit, at one byte or more each, so a million values need not all be
 * visited. Recursion ends at `metadataDepthMax`.
 */
function faultOf(value: unknown, depth: number, room: { values: number }): MetadataFault {
  room.values -= 1;
  if (room.values < 0) return 'metadata.tooLarge';
  // `1e400` is read as Infinity, which JSON cannot express: it would come back as null.
  if (value === Infinity || value === -Infinity) return 'metadata.infinite';
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > CHAT_LIMITS.metadataDepthMax) return 'metadata.tooDeep';
  for (const [key, child] of Object.entries(value)) {
    if (key === POISONED_KEY) return 'metadata.poisoned';
    const fault = faultOf(child, depth + 1, room);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const checkMetadata: Joi.CustomValidator<object> = (value, helpers) => {
  const fault = faultOf(value, 1, { values: CHAT_LIMITS.metadataBytesMax });
  if (fault !== undefined) return helpers.error(fault);
  return Buffer.byteLength(JSON.stringify(value)) > CHAT_LIMITS.metadataBytesMax
    ? helpers.error('metadata.tooLarge')
    : value;
};

/** joi refuses unsafe and infinite numbers before it checks the bounds; those errors name the bounds as well. */
function between(min: number, max: number, schema: Joi.NumberSchema): Joi.NumberSchema {
  const rule = `{{#label}} must be between ${String(min)} and ${String(max)}`;
  return schema.min(min).max(max).messages({ 'number.unsafe': rule, 'number.infinity': rule });
}

export const numberBetween = (min: number, max: number) => between(min, max, Joi.number());
export const wholeNumberBetween = (min: number, max: number) => between(min, max, Joi.number().integer());

const message = Joi.object({
  role: Joi.string()
    .valid(...ROLES)
    .required(),
  content: textUpTo(CHAT_LIMITS.contentMax).required(),
}).unknown(true);

/** Only documented: validation converts nothing (parse.ts). */
const unless = (value: unknown) => ({ default: value });

const messagesSchema = Joi.array()
  .max(CHAT_LIMITS.messagesMax)
  .min(1)
  .items(message)
  .description('The conversation, oldest message first.')
  .required();
export const tierSchema = Joi.string()
  .valid(...CHAT_TIERS)
  .description("The model tier; the tenant's default tier where it is left out.");
const maxTokensSchema = wholeNumberBetween(1, CHAT_LIMITS.maxTokensMax)
  .description('The most tokens that the answer may have.')
  .meta(unless(CHAT_LIMITS.maxTokensDefault));
const contextTextSchema = textUpTo(CHAT_LIMITS.contextTextMax).allow('');
/** `subject` and `grade` of entities and tenants. */
export const storedContextSchema = storedText(CHAT_LIMITS.contextTextMax).allow('', null);
export const entityIdSchema = storedText(CHAT_LIMITS.entityIdMax).description(
  "The caller's own id of the entity; with it the conversation is remembered.",
);
export const metadataSchema = Joi.object()
  .unknown(true)
  .custom(checkMetadata)
  .meta({
    rule: `At most ${String(CHAT_LIMITS.metadataBytesMax)} bytes as JSON and ${String(CHAT_LIMITS.metadataDepthMax)} levels deep, without the key \`${POISONED_KEY}\` and numbers beyond ${String(Number.MAX_VALUE)}.`,
  })
  .description("The caller's own data, returned as it was sent.");

/**
 * Every field that all chat routes read, by its name in `ChatRequest`; bodies, schemas, `X-Ignored-Fields`, the
 * fingerprint of an Idempotency-Key and the export follow from it. A name ending in `Json` holds the wire's object as
 * JSON text. A field of `ChatRequest` that is missing here does not compile.
 */
const chatFields = {
  messages: { wire: 'messages', rule: messagesSchema },
  model: { wire: 'model', rule: tierSchema },
  maxTokens: { wire: 'max_tokens', rule: maxTokensSchema },
  entityId: { wire: 'entity_id', rule: entityIdSchema },
  subject: {
    wire: 'subject',
    rule: contextTextSchema.description("The subject of the conversation; else the entity's, else the tenant's."),
  },
  grade: {
    wire: 'grade',
    rule: contextTextSchema.description("The grade level; else the entity's, else the tenant's."),
  },
  metadataJson: { wire: 'metadata', rule: metadataSchema },
  jsonMode: { wire: 'json_mode', rule: Joi.boolean().description('The answer is a JSON object.').meta(unless(false)) },
} as const satisfies Record<ChatFieldName, { wire: string; rule: Joi.Schema }>;

/** Some fields are of one route, `task` of two others, and the last three of none. */
type ChatFieldName = Exclude<keyof ChatRequest, 'passed' | 'schema' | 'task' | 'needs' | 'fitsTokens' | 'isUnbounded'>;
/** Object.entries loses the names, which are those of `chatFields`. */
export const CHAT_FIELDS = Object.entries(chatFields) as [ChatFieldName, { wire: keyof ChatBody; rule: Joi.Schema }][];

/** `POST /chat` and `POST /chat/stream` on the wire. */
export type ChatBody = Pick<ChatRequest, 'messages'> & {
  [Name in Exclude<ChatFieldName, 'messages'> as (typeof chatFields)[Name]['wire']]?: Name extends `${string}Json`
    ? object
    : NonNullable<ChatRequest[Name]>;
};

export const chatRules = Object.fromEntries(CHAT_FIELDS.map(([, { wire, rule }]) => [wire, rule])) as {
  [Name in keyof ChatBody]-?: Joi.Schema;
};
export const chatBodySchema = Joi.object<ChatBody>(chatRules).unknown(true).required();

/** Beyond these bounds, JavaScript's numbers skip integers. */
const SAFE_RULE = `{{#label}} must be between -${String(Number.MAX_SAFE_INTEGER)} and ${String(Number.MAX_SAFE_INTEGER)}`;

/** Replaces what joi words for programmers, and words the schema's own error types. */
export const CHAT_MESSAGES: Joi.LanguageMessages = {
  'number.unsafe': SAFE_RULE,
  'number.infinity': SAFE_RULE,
  'array.min': '{{#label}} must contain at least {{#limit}} {if(#limit == 1, "item", "items")}',
  'text.tooLong': '{{#label}} must not be longer than {{#limit}} characters (Unicode code points)',
  'text.malformed': '{{#label}} must not have half a surrogate pair',
  'metadata.tooDeep': `{{#label}} must not be nested deeper than ${String(CHAT_LIMITS.metadataDepthMax)} levels`,
  'metadata.poisoned': `{{#label}} must not contain the key ${POISONED_KEY}`,
  'metadata.infinite': `{{#label}} must not contain numbers beyond ${String(Number.MAX_VALUE)}; send them as strings`,
  'metadata.tooLarge': `{{#label}} must not exceed ${String(CHAT_LIMITS.metadataBytesMax)} bytes as JSON`,
};
