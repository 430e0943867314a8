import { objectAt } from './call-tools.ts';
import { isObject, parseChatRequest, refuse } from './chat-request.ts';
import type { ChatRequest } from './chat-request.ts';
import type { Answer, Delta } from './plan-answer.ts';
import type { Dialect, StreamEvents } from './reply.ts';
import { toldUsage, usageOf } from './usage-shape.ts';
import type { Usage } from './usage-shape.ts';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});
const blocksOf = (content: unknown): readonly Fields[] =>
  Array.isArray(content) ? content.map(fieldsOf) : [{ type: 'text', text: content }];

/** A block as a part of OpenAI's messages; undefined: one that says nothing to the model. */
function toPart({ type, text }: Fields): object | undefined {
  if (type === 'text') return { type, text };
  if (type === 'image') return { type: 'image_url', image_url: {} };
  return type === 'document' ? { type: 'file', file: {} } : undefined;
}

const partsOf = (blocks: readonly Fields[]) => blocks.map(toPart).filter((part) => part !== undefined);

/** OpenAI's messages of one: the results of tools are messages of their own. */
function toMessages({ role, content }: Fields): object[] {
  const blocks = blocksOf(content);
  const parts = partsOf(blocks);
  const results = blocks
    .filter(({ type }) => type === 'tool_result')
    .map(({ tool_use_id: id, content: result = '' }) => ({
      role: 'tool',
      tool_call_id: id,
      content: partsOf(blocksOf(result)),
    }));
  const calls = blocks
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }));
  if (parts.length === 0 && results.length > 0) return results;
  return [...results, { role, content: parts, ...(calls.length === 0 ? {} : { tool_calls: calls }) }];
}

const CHOICES: Readonly<Record<string, string>> = { auto: 'auto', any: 'required', none: 'none' };

function toTools({ tools, tool_choice: chosen }: Fields): Fields {
  if (!Array.isArray(tools)) return {};
  const { type, name, disable_parallel_tool_use: isSingle } = fieldsOf(chosen);
  return {
    tools: tools
      .map(fieldsOf)
      .map(({ input_schema: parameters, ...tool }) => ({
        type: 'function',
        function: { name: tool['name'], parameters },
      })),
    tool_choice: CHOICES[String(type)] ?? (name === undefined ? 'auto' : { type: 'function', function: { name } }),
    parallel_tool_calls: isSingle !== true,
  };
}

/** The protocol has no field for it: who wants JSON says so in the system's words, and which. */
function readFormat(system: readonly { text?: unknown }[]): Pick<ChatRequest, 'wantsJson' | 'schema'> {
  const text = system.map((part) => String(part.text)).join('\n');
  const schema = objectAt(text.split('JSON schema:\n')[1] ?? '');
  const wanted = schema === undefined ? {} : { schema: JSON.parse(schema) as unknown };
  return { wantsJson: text.includes('one JSON object'), ...wanted };
}

/** Reads a request of Anthropic's protocol as the request of OpenAI's that asks for the same. */
function parseMessagesRequest(given: unknown): ChatRequest {
  const { messages, system, max_tokens: most, stop_sequences: stop, ...body } = fieldsOf(given);
  if (most === undefined) refuse('max_tokens', 'is required');
  if (!Array.isArray(messages)) return refuse('messages', 'must be a non-empty array');
  const { model, temperature, top_p: topP, stream } = body;
  const said = system === undefined ? [] : blocksOf(system);
  const before = said.length === 0 ? [] : [{ role: 'system', content: partsOf(said) }];
  const read = parseChatRequest({
    ...{ model, temperature, top_p: topP, stream, stop, max_tokens: most },
    ...toTools(body),
    messages: [...before, ...messages.map(fieldsOf).flatMap(toMessages)],
  });
  return { ...read, ...readFormat(said), received: messages, includeUsage: true };
}

/** The prompt's tokens that a cache had or got are not among `input_tokens`. */
function toUsage({ prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: kinds = {} }: Usage) {
  const { cached_tokens: read = 0, cache_write_tokens: written = 0 } = kinds;
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  };
}

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
};
const stopReasonOf = ({ refusal, finishReason }: Answer) =>
  refusal === '' ? (STOP_REASONS[finishReason] ?? finishReason) : 'refusal';

function contentOf({ reasoning, text, refusal, calls }: Answer): object[] {
  const thinking = { type: 'thinking', thinking: reasoning, signature: 'simulated' };
  return [
    ...(reasoning === '' ? [] : [thinking]),
    ...(text + refusal === '' ? [] : [{ type: 'text', text: text + refusal }]),
    ...calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input: JSON.parse(input) as unknown })),
  ];
}

const eventOf = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** The block that a delta of OpenAI's belongs to, and its part there. */
function toBlockPart({ text, other }: Delta): { block: object; part: object } {
  const { reasoning_content: reasoning, refusal, tool_calls: called } = fieldsOf(other);
  if (reasoning !== undefined)
    return { block: { type: 'thinking', thinking: '' }, part: { type: 'thinking_delta', thinking: reasoning } };
  const [call] = Array.isArray(called) ? called.map(fieldsOf) : [];
  if (call === undefined)
    return { block: { type: 'text', text: '' }, part: { type: 'text_delta', text: refusal ?? text } };
  const { name, arguments: json } = fieldsOf(call['function']);
  return {
    block: { type: 'tool_use', id: call['id'], name, input: {} },
    part: { type: 'input_json_delta', partial_json: json },
  };
}

function createMessageEvents(start: object, usageAtStart: object | undefined): StreamEvents {
  let index = -1;
  let open: unknown;
  const close = () => (index < 0 ? '' : eventOf('content_block_stop', { index }));
  return {
    begin: () => eventOf('message_start', { message: { ...start, content: [], usage: usageAtStart } }),
    delta(delta) {
      const { block, part } = toBlockPart(delta);
      const { type, name } = block as Fields;
      let begun = '';
      // A call begins with its name; what follows has only arguments.
      if (type !== open || name !== undefined) {
        begun = `${close()}${eventOf('content_block_start', { index: index + 1, content_block: block })}`;
        index += 1;
        open = type;
      }
      return begun + eventOf('content_block_delta', { index, delta: part });
    },
    end: ([answer], usage) => {
      const stopped = { stop_reason: answer === undefined ? 'end_turn' : stopReasonOf(answer), stop_sequence: null };
      return close() + eventOf('message_delta', { delta: stopped, usage }) + eventOf('message_stop', {});
    },
  };
}

/** Anthropic's Messages API. */
export const MESSAGES: Dialect = {
  read: parseMessagesRequest,
  idPrefix: 'msg_',
  tellsAllKinds: false,
  usage: toUsage,
  complete({ head: { id, model }, answers: [answer] }, usage) {
    if (answer === undefined) return '{}';
    const end = { stop_reason: stopReasonOf(answer), stop_sequence: null };
    return JSON.stringify({ id, type: 'message', role: 'assistant', model, content: contentOf(answer), ...end, usage });
  },
  events({ head: { id, model }, promptTokens, usageShape }) {
    const start = { id, type: 'message', role: 'assistant', model, stop_reason: null, stop_sequence: null };
    const counts = usageOf({ prompt: promptTokens, completion: 1, reasoning: 0 }, usageShape);
    return createMessageEvents(start, toldUsage(toUsage(counts), usageShape));
  },
};
