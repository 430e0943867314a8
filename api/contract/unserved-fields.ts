import Joi from 'joi';

import { ServiceError } from '../../shared/errors/service-error.ts';

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

const TOOLS = 'is not supported: this service answers with text only; leave `tools` and `tool_choice` out';
const FUNCTIONS = 'is not supported: this service answers with text only; leave `functions` and `function_call` out';
const LOGPROBS = 'is not supported: answers come without the probabilities of their tokens; leave it out';
const SAMPLING = 'is not supported, because not every provider knows it; leave it out';
const GRAMMAR = 'is not supported; ask for a JSON object instead, and say in a message what it holds';
const ELSEWHERE = 'is read by `POST /chat/completions` only;';

/**
 * Ignoring one of these would change what the answer is or means without telling the caller, so the request fails. Any
 * other unknown field is ignored and named in `X-Ignored-Fields` (docs/spec.md#chat-request).
 */
export const UNSERVED: UnservedFields = {
  tools: { accepted: emptyList, say: TOOLS },
  tool_choice: { accepted: noChoice, say: TOOLS },
  functions: { accepted: emptyList, say: FUNCTIONS },
  function_call: { accepted: noChoice, say: FUNCTIONS },
  audio: { accepted: nothing, say: 'is not supported: this service answers with text only; leave it out' },
  n: {
    accepted: Joi.valid(1, null),
    say: 'must be 1: a request has one answer; send it again for another',
  },
  logprobs: { accepted: Joi.valid(false, null), say: LOGPROBS },
  top_logprobs: { accepted: Joi.valid(0, null), say: LOGPROBS },
  logit_bias: {
    accepted: Joi.object().max(0).allow(null),
    say: 'is not supported: the models behind a tier number their tokens differently; leave it out',
  },
  prediction: { accepted: nothing, say: 'is not supported; leave it out' },
  web_search_options: { accepted: nothing, say: 'is not supported: the models search nothing; leave it out' },
  top_k: { accepted: Joi.valid(0, -1, null), say: SAMPLING },
  min_p: { accepted: Joi.valid(0, null), say: SAMPLING },
  repetition_penalty: { accepted: Joi.valid(1, null), say: SAMPLING },
  structured_outputs: { accepted: nothing, say: GRAMMAR },
  guided_json: { accepted: nothing, say: GRAMMAR },
  guided_regex: { accepted: nothing, say: GRAMMAR },
  guided_choice: { accepted: nothing, say: GRAMMAR },
  guided_grammar: { accepted: nothing, say: GRAMMAR },
  grammar: { accepted: nothing, say: GRAMMAR },
};

/** On the chat routes, which do not know OpenAI's names. */
export const UNSERVED_ON_CHAT: UnservedFields = {
  ...UNSERVED,
  max_completion_tokens: { accepted: nothing, say: `${ELSEWHERE} here it is \`max_tokens\`` },
  response_format: {
    accepted: Joi.object({ type: Joi.valid('text', null) })
      .unknown(true)
      .allow(null),
    say: `${ELSEWHERE} here \`json_mode\` asks for a JSON object`,
  },
  stop: {
    accepted: Joi.alternatives(Joi.valid('', null), Joi.array().items(Joi.valid('', null))),
    say: `${ELSEWHERE} send the request there, or leave it out`,
  },
};

/** On those whose answer is complete. */
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
