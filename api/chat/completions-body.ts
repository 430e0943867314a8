import Joi from 'joi';

import {
  CHAT_LIMITS,
  DECISIVE_FIELDS,
  chatRules,
  numberBetween,
  textUpTo,
  wholeNumberBetween,
  words,
} from '../../shared/contracts/chat-request.ts';
import type { Capability, ChatBody, ChatRequest } from '../../shared/contracts/chat-request.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import { ANTHROPIC_FIELDS } from '../../shared/domain/routing.ts';
import type { OpenAiForm } from '../relay/sse.ts';
import { acceptedOf, checkReadable, refuseUnserved, requestOf } from './chat-body.ts';
import type { ParsedChatBody, UnservedFields } from './chat-body.ts';
import { messagesSchema, readMessages, refuse } from './completion-messages.ts';
import { readAnswerSchema } from './response-format.ts';

/** The body of `POST /chat/completions`: the fields of OpenAI's API that are read or checked here, and this service's own. */
interface CompletionsBody extends ChatBody {
  max_completion_tokens?: number;
  stream?: boolean;
  stream_options?: { include_usage?: boolean | null };
  response_format?: { type?: 'text' | 'json_object' | 'json_schema' | null; json_schema?: unknown };
}

const MODEL_NAME_MAX = 256;
/** Maximum code points of `user` and of each `stop`. */
const SHORT_TEXT_MAX = 256;
const TOOLS_MAX = 512;

const shortText = textUpTo(SHORT_TEXT_MAX);
const tokens = wholeNumberBetween(1, Number.MAX_SAFE_INTEGER);
const anyObject = Joi.object().unknown(true);

/** The texts that end the answer; undefined: none does. */
function stopOf(stop: string | (string | null)[]): string | string[] | undefined {
  if (!Array.isArray(stop)) return stop === '' ? undefined : stop;
  const texts = stop.filter((text): text is string => text !== null && text !== '');
  return texts.length === 0 ? undefined : texts;
}

const toolSchema = Joi.object({
  type: Joi.string().required().description('`function`; `custom` where a model of the tier takes it.'),
  function: Joi.object({
    name: shortText.required(),
    description: Joi.string().allow('', null),
    parameters: anyObject.allow(null).description('A JSON schema.'),
    strict: Joi.boolean().allow(null),
  })
    .unknown(true)
    .allow(null),
}).unknown(true);

interface PassedField {
  rule: Joi.Schema;
  /** The value that a provider gets; undefined: it asks for nothing. Absent: the value as it came. */
  read?: (value: never) => unknown;
  /** The capability that a target must have. Absent: the field is left out where a target does not take it. */
  needs?: Capability;
}

const unlessZero = (value: number) => (value === 0 ? undefined : value);
const unlessBlank = (value: string) => value || undefined;
const unlessEmpty = (value: object) => (Object.keys(value).length === 0 ? undefined : value);

/** The greatest number of JavaScript's within 64 bits is not `2 ** 63 - 1`. */
const INT64 = { least: -(2 ** 63), most: 2 ** 63 - 1_024 };

/** Fields that providers of OpenAI's protocol get as they came, once checked. Unknown fields are passed on unchecked. */
const passedFields: Readonly<Record<string, PassedField>> = {
  temperature: { rule: numberBetween(0, 2) },
  top_p: { rule: numberBetween(0, 1) },
  stop: {
    rule: Joi.alternatives(shortText.allow(''), Joi.array().items(shortText.allow('', null)).max(4)).description(
      'Empty texts and an empty list stop nothing.',
    ),
    read: stopOf,
  },
  seed: { rule: Joi.number().integer().unsafe().min(INT64.least).max(INT64.most) },
  user: { rule: shortText.allow('').description('Providers read a keyed hash of tenant and user.'), read: unlessBlank },
  safety_identifier: { rule: shortText.allow('').description('Like `user`.'), read: unlessBlank },
  prompt_cache_key: { rule: shortText.allow('').description('Like `user`.'), read: unlessBlank },
  frequency_penalty: { rule: numberBetween(-2, 2), read: unlessZero },
  presence_penalty: { rule: numberBetween(-2, 2), read: unlessZero },
  reasoning_effort: { rule: shortText },
  verbosity: { rule: shortText },
  tools: { rule: Joi.array().items(toolSchema).max(TOOLS_MAX), read: unlessEmpty, needs: 'tools' },
  tool_choice: { rule: Joi.alternatives(Joi.string().valid('none', 'auto', 'required'), anyObject) },
  parallel_tool_calls: { rule: Joi.boolean() },
  logprobs: { rule: Joi.boolean(), read: (value: boolean) => value || undefined, needs: 'logprobs' },
  top_logprobs: { rule: wholeNumberBetween(0, 20).description('With `logprobs`.'), read: unlessZero },
  logit_bias: {
    rule: anyObject.description('Models number their tokens differently: fit for a tier of one model.'),
    read: unlessEmpty,
  },
  prediction: { rule: anyObject },
  web_search_options: { rule: anyObject },
};
const PASSED_FIELDS = Object.entries(passedFields);

const FUNCTIONS = 'is the older form of `tools`; send `tools` and `tool_choice`';
const nothing = Joi.valid(null);

/** Fields that would change the answer, and that no target can serve. */
const refusedFields: UnservedFields = {
  n: { accepted: Joi.valid(1, null), say: 'must be 1: a request has one answer; send it again for another' },
  functions: { accepted: Joi.array().max(0).allow(null), say: FUNCTIONS },
  function_call: { accepted: Joi.valid('none', 'auto', null), say: FUNCTIONS },
  audio: { accepted: nothing, say: 'is not supported: this service answers in text; leave it out' },
  best_of: { accepted: Joi.valid(1, null), say: 'is not supported: a request has one answer; leave it out' },
};

/**
 * The administrator decides where, for how long and at whose price a request runs, so providers and gateways do not get
 * these fields of a caller. `X-Ignored-Fields` names them.
 */
const KEPT_BACK = words(
  'store service_tier models provider route plugins transforms fallbacks deployment_id api_base api_key ' +
    'api_version base_url custom_llm_provider model_list mock_response cache extra_body extra_headers ' +
    'extra_query timeout max_retries num_retries use_beam_search max_output_tokens max_new_tokens max_length ' +
    'num_predict n_predict min_tokens ignore_eos priority',
);
/** Values of them that ask for what happens anyway. */
const isUsual = (value: unknown) => [null, undefined, false, 'auto', 'default'].includes(value as string);

const ownFields = {
  ...chatRules,
  model: textUpTo(MODEL_NAME_MAX).description(
    "A tier, or a name that the administrator publishes; the tenant's default tier where it is left out.",
  ),
  messages: messagesSchema,
  max_tokens: tokens.description(
    `The most tokens of the answer, within what the model can make and its window leaves. Left out: the target's \`max_output_tokens\`, else ${CHAT_LIMITS.maxTokensDefault}.`,
  ),
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
  modalities: Joi.array().items(Joi.string().valid('text')).max(1).description('Answers are text.'),
};
const fields = { ...ownFields, ...Object.fromEntries(PASSED_FIELDS.map(([name, { rule }]) => [name, rule])) };
/** `readMessages` checks the messages. */
const checkedFields = Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'messages'));
const bodySchema = Joi.object<CompletionsBody>(checkedFields).unknown(true).required();
const CHECKED_NAMES: ReadonlySet<string> = new Set(Object.keys(checkedFields));
/** Our own fields, and those that no provider gets. */
const NOT_PASSED: ReadonlySet<string> = new Set([...Object.keys({ ...fields, ...refusedFields }), ...KEPT_BACK]);

/** Used only in the document; a test compares it with what `parseCompletionsBody` accepts. */
export const completionsWireSchema = Joi.object<CompletionsBody>({
  ...Object.fromEntries(Object.entries(checkedFields).map(([name, schema]) => [name, schema.allow(null)])),
  messages: messagesSchema,
  ...acceptedOf(refusedFields),
})
  .unknown(true)
  .required();

/** The official client, and many that print objects as JSON, send `null` for fields that their user leaves out. */
function withoutNulls(body: unknown): unknown {
  if (!isRecord(body) || !Object.values(body).includes(null)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null || name === 'messages'));
}

type Fields = Readonly<Record<string, unknown>>;

/** Ask for nothing without `tools`: OpenAI refuses them then, and clients send them all the same. */
const OF_TOOLS: ReadonlySet<string> = new Set(['tool_choice', 'parallel_tool_calls']);

/** The name of a tool that is defined or chosen. Undefined: it is neither a function nor a custom tool. */
function namedIn(tool: unknown): string | undefined {
  const { function: called, custom } = isRecord(tool) ? tool : {};
  const definition = called ?? custom;
  return isRecord(definition) && typeof definition['name'] === 'string' ? definition['name'] : undefined;
}

/** Checks what fields say of each other. Returns the fields without those that ask for nothing. */
function related(passed: Fields): Fields {
  const { tools, tool_choice: choice } = passed;
  if (passed['top_logprobs'] !== undefined && passed['logprobs'] === undefined)
    refuse('top_logprobs', 'needs `logprobs: true`');
  if (!Array.isArray(tools)) {
    if (choice !== undefined && choice !== 'none' && choice !== 'auto') refuse('tool_choice', 'needs `tools`');
    return Object.fromEntries(Object.entries(passed).filter(([name]) => !OF_TOOLS.has(name)));
  }
  for (const [index, tool] of tools.entries()) {
    const { type, function: definition } = tool as Fields;
    if (type === 'function' && !definition) refuse(`tools[${index}].function`, 'is required');
  }
  const named = namedIn(choice);
  if (isRecord(choice) && named === undefined && !isRecord(choice['allowed_tools']))
    refuse(
      'tool_choice',
      'must be `none`, `auto`, `required`, `{"type": "function", "function": {"name": …}}` or its like',
    );
  if (named !== undefined && !tools.some((tool) => namedIn(tool) === named))
    refuse('tool_choice', `names \`${named}\`, which is not among \`tools\``);
  return passed;
}

function passedOf(body: Fields): Fields {
  const known = PASSED_FIELDS.flatMap(([name, { read }]) => {
    const given = body[name];
    // The field's rule has checked the value.
    const value = given === undefined || read === undefined ? given : read(given as never);
    // Only what is set travels to the worker and makes one body differ from another.
    return value === undefined ? [] : [[name, value] as const];
  });
  const unknown = Object.entries(body).filter(([name, value]) => value !== undefined && !NOT_PASSED.has(name));
  return related(Object.fromEntries([...known, ...unknown]));
}

/** The capabilities that a target must have: for the fields, beside what is there already for the rest. */
function needsOf(passed: Fields, needs: Set<Capability>): readonly Capability[] {
  for (const name of Object.keys(passed)) {
    const need = DECISIVE_FIELDS.has(name) ? 'openai_fields' : passedFields[name]?.needs;
    if (need !== undefined) needs.add(need);
  }
  const { tools } = passed;
  if (Array.isArray(tools) && tools.some((tool) => (tool as Fields)['type'] !== 'function')) needs.add('custom_tools');
  return [...needs];
}

function toRequest(body: CompletionsBody): ChatRequest {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const { messages, needs: media } = readMessages(body.messages);
  const passed = passedOf({ ...body });
  const { type, json_schema: format } = body.response_format ?? {};
  const schema = type === 'json_schema' ? readAnswerSchema(format) : undefined;
  const needs = needsOf(passed, media);
  return {
    ...requestOf({ ...body, messages: [] }),
    messages,
    ...(maxTokens === undefined ? { maxTokens: Number.MAX_SAFE_INTEGER, isUnbounded: true } : { maxTokens }),
    fitsTokens: true,
    jsonMode: body.json_mode === true || type === 'json_object',
    passed,
    ...(schema === undefined ? {} : { schema }),
    ...(needs.length === 0 ? {} : { needs }),
  };
}

/** The rows of the table in docs/guide/compatibility.md: a field, what providers of each protocol get, and a note. */
export function fieldUses(): string[][] {
  const noteOf = (rule: Joi.Schema) =>
    (rule.describe().flags as { description?: string } | undefined)?.description ?? '';
  const named = 'left out, named';
  const own = Object.entries(ownFields).map(([name, rule]) => [
    name,
    'read by the service',
    'read by the service',
    noteOf(rule),
  ]);
  const passed = PASSED_FIELDS.map(([name, { rule, needs }]) => {
    const lost = needs === undefined && !DECISIVE_FIELDS.has(name) ? named : 'another target, or 400';
    return [name, 'as it came', ANTHROPIC_FIELDS.has(name) ? 'mapped' : lost, noteOf(rule)];
  });
  const refused = Object.entries(refusedFields).map(([name, { say }]) => [name, '400', '400', `\`${name}\` ${say}.`]);
  const kept = [...KEPT_BACK].map((name) => [name, named, named, '']);
  return [...own, ...passed, ...refused, ...kept].map(([name = '', ...row]) => [`\`${name}\``, ...row]);
}

/** OpenAI sends the usage in a chunk of its own, and only if asked for it. */
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

/** Throws `invalid_request` or `too_many_messages`. */
export function parseCompletionsBody(input: unknown): ParsedChatBody & { stream: boolean } {
  refuseUnserved(input, refusedFields);
  const body = withoutNulls(input);
  checkReadable(bodySchema, body, CHECKED_NAMES);
  return {
    request: toRequest(body),
    ignoredFields: Object.entries(body).flatMap(([name, value]) =>
      KEPT_BACK.has(name) && !isUsual(value) ? name : [],
    ),
    form: { usage: usagePlaceOf(body) },
    stream: body.stream === true,
  };
}
