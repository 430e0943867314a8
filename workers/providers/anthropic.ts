import type { ChatMessage, ChatRequest, Role } from '../../shared/contracts/chat-request.ts';
import { toDelta, withKinds } from '../../shared/contracts/events.ts';
import type { Fields, Usage } from '../../shared/contracts/events.ts';
import { isRecord, wellFormedJson } from '../../shared/contracts/parse.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import { createEndpoint } from '../../shared/http/http-call.ts';
import type { HttpClient } from '../../shared/http/http-client.ts';
import { callProvider, modelName, parseObject, plainWord, readFinishReason, tokenCount } from './call-provider.ts';
import type { FinishReason, ProviderStreamReader } from './call-provider.ts';
import { errorInAnswer, errorOf } from './error-reply.ts';
import { BETWEEN_JOINED, joinRoles, textOfRow } from './join-roles.ts';
import type { Row } from './join-roles.ts';
import { EnoughError, endpointUrl } from './post-to-provider.ts';
import { ProviderError, offersTools, perProvider } from './provider.ts';
import type { ProviderAdapter, ProviderCall, ProviderSink } from './provider.ts';

type Passed = ChatRequest['passed'];

/** The API accepts no stop sequence of nothing but white space, so one such as `"\n"` is looked for here. */
function isBlankText(stop: string): boolean {
  return stop.trim() === '';
}

/**
 * Ends the answer, and with it the call, just before the first of `stops`, which are all blank. Holds back only white
 * space that may begin one of them. A cut answer reports no usage, because the provider's count includes the text after
 * the cut.
 */
export function cutAtBlank(sink: ProviderSink, stops: readonly string[]): ProviderSink {
  const reach = Math.max(...stops.map((stop) => stop.length)) - 1;
  let held = '';
  const show = (text: string) => {
    if (text !== '') sink({ kind: 'text', text });
  };
  return (event) => {
    if (event.kind !== 'text') {
      show(held);
      held = '';
      sink(event);
      return;
    }
    held += event.text;
    const found = stops.map((stop) => held.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) {
      show(held.slice(0, Math.min(...found)));
      sink({ kind: 'end', finishReason: 'stop', usage: undefined });
      throw new EnoughError();
    }
    const kept = Math.min(reach, held.length - held.trimEnd().length);
    const text = held.slice(0, held.length - kept);
    held = held.slice(held.length - kept);
    show(text);
  };
}

/** Token counts as far as they are known; a stream reports them in two events. */
export interface AnthropicUsage {
  input?: number;
  /** Written to the provider's prompt cache; not part of `input`, like `cacheRead`. */
  cacheCreation?: number;
  cacheRead?: number;
  output?: number;
}

/** One event of a stream means one of these to this service. */
export type AnthropicEvent =
  | { kind: 'text'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'call'; block: unknown; call: Fields }
  | { kind: 'arguments'; block: unknown; json: string }
  | { kind: 'block_end'; block: unknown }
  | { kind: 'progress'; finishReason: FinishReason | undefined; usage: AnthropicUsage; model?: string | undefined }
  | { kind: 'stop' }
  | { kind: 'other' };

export interface AnthropicMessage {
  text: string;
  reasoning: string;
  /** Calls of tools, as OpenAI has them. */
  calls: Fields[];
  finishReason: FinishReason;
  usage: Usage | undefined;
  model: string | undefined;
}

/** `pause_turn` waits for a next step that this service never takes, as `tool_use` does where no tools were offered. */
function toFinishReason(word: unknown, passed: Passed): FinishReason | undefined {
  const meaning = readFinishReason(word);
  if (meaning !== 'unknown' && (meaning !== 'tool_calls' || offersTools(passed))) return meaning;
  throw new ProviderError(
    'transient',
    `The provider stopped for a reason that ends no answer (${plainWord(String(word))})`,
  );
}

/** Some servers keep OpenAI's words for the two counts. */
const USAGE_FIELDS = {
  input: ['input_tokens', 'prompt_tokens'],
  cacheCreation: ['cache_creation_input_tokens'],
  cacheRead: ['cache_read_input_tokens'],
  output: ['output_tokens', 'completion_tokens'],
} as const satisfies Record<keyof AnthropicUsage, readonly string[]>;

function toUsage(value: unknown): AnthropicUsage {
  if (!isRecord(value)) return {};
  const counts = Object.entries(USAGE_FIELDS).map(
    ([name, fields]) =>
      [
        name,
        tokenCount(fields.map((field) => value[field]).find((count) => count !== undefined && count !== null)),
      ] as const,
  );
  return Object.fromEntries(counts.filter(([, count]) => count !== undefined));
}

/**
 * The usage known after a later event, whose figures are totals, not increments. The prompt's figures are taken over
 * together, and only if they are not all zero: SGLang, for one, sends zeros for a prompt that its first event has
 * counted.
 */
function laterUsage(before: AnthropicUsage, later: AnthropicUsage): AnthropicUsage {
  const { input = 0, cacheCreation = 0, cacheRead = 0, output = 0 } = later;
  const usage = input + cacheCreation + cacheRead > 0 ? { ...before, ...later } : { ...later, ...before };
  return later.output === undefined ? usage : { ...usage, output: Math.max(output, before.output ?? 0) };
}

/** The prompt counts, cached or not. Prompt or answer alone is no count. */
export function wholeUsage({ input, cacheCreation = 0, cacheRead = 0, output }: AnthropicUsage): Usage | undefined {
  if (input === undefined || output === undefined) return undefined;
  const counts = { promptTokens: input + cacheCreation + cacheRead, completionTokens: output };
  return withKinds(counts, { cachedTokens: cacheRead, cacheWriteTokens: cacheCreation });
}

const textIn = (value: unknown) => (typeof value === 'string' ? value : '');

/** A `tool_use` block as OpenAI's call; a stream gives its input in later events. */
function toCall({ id, name, input }: Fields, isWhole: boolean): Fields {
  const isGiven = isWhole || (isRecord(input) && Object.keys(input).length > 0);
  return { id, type: 'function', function: { name, arguments: isGiven ? JSON.stringify(input ?? {}) : '' } };
}

/** Reads the begin of a block, or a part of one. Callers of plain text get neither reasoning nor calls of tools. */
function parseBlock({ index: block, content_block: begun, delta }: Fields, passed: Passed): AnthropicEvent {
  const part = isRecord(delta) ? delta : isRecord(begun) ? begun : {};
  const { type } = part;
  if (type === 'text' || type === 'text_delta') return { kind: 'text', text: textIn(part['text']) };
  if (passed === undefined) return { kind: 'other' };
  if (type === 'thinking' || type === 'thinking_delta') return { kind: 'reasoning', text: textIn(part['thinking']) };
  if (!offersTools(passed)) return { kind: 'other' };
  if (type === 'tool_use') return { kind: 'call', block, call: toCall(part, false) };
  return type === 'input_json_delta'
    ? { kind: 'arguments', block, json: textIn(part['partial_json']) }
    : { kind: 'other' };
}

/** Reads one event. Throws a ProviderError for an error. */
export function parseEvent(event: Record<string, unknown>, passed?: Passed): AnthropicEvent {
  switch (event['type']) {
    case 'message_start': {
      // Its output count covers only the beginning; without a later figure, there is no output count.
      const message = isRecord(event['message']) ? event['message'] : {};
      const usage = toUsage(message['usage']);
      delete usage.output;
      return { kind: 'progress', finishReason: undefined, usage, model: modelName(message['model']) };
    }
    case 'content_block_start':
    case 'content_block_delta':
      return parseBlock(event, passed);
    case 'content_block_stop':
      return { kind: 'block_end', block: event['index'] };
    case 'message_delta': {
      const delta = isRecord(event['delta']) ? event['delta'] : {};
      const usage = toUsage(event['usage'] ?? delta['usage']);
      return { kind: 'progress', finishReason: toFinishReason(delta['stop_reason'], passed), usage };
    }
    case 'message_stop':
      return { kind: 'stop' };
    case 'error':
      throw errorInAnswer(event['error']);
    default: {
      const error = errorOf(event, typeof event['type'] === 'string');
      if (error !== undefined) throw errorInAnswer(error);
      // `ping`, and whatever the API may add: clients are to ignore unknown events.
      return { kind: 'other' };
    }
  }
}

/** Reads a complete answer. Throws a ProviderError on anything else. */
export function parseMessage(message: Record<string, unknown>, passed?: Passed): AnthropicMessage {
  const content = message['content'];
  const error = message['type'] === 'error' ? message['error'] : errorOf(message, Array.isArray(content));
  if (error !== undefined) throw errorInAnswer(error);
  if (!Array.isArray(content)) throw new ProviderError('transient', 'The provider sent an answer without content');
  const finishReason = toFinishReason(message['stop_reason'], passed);
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider sent an answer without a stop reason');
  const blocks = content.filter(isRecord);
  const textOf = (type: 'text' | 'thinking') =>
    blocks.map((block) => (block['type'] === type ? textIn(block[type]) : '')).join('');
  const calls = offersTools(passed) ? blocks.filter(({ type }) => type === 'tool_use') : [];
  return {
    text: textOf('text'),
    reasoning: passed === undefined ? '' : textOf('thinking'),
    calls: calls.map((block, index) => ({ index, ...toCall(block, true) })),
    finishReason,
    usage: wholeUsage(toUsage(message['usage'])),
    model: modelName(message['model']),
  };
}

/** The version of the Messages API that this adapter was written for. */
const API_VERSION = '2023-06-01';

type Turn = { role: Role; content: string | Fields[] };

/** The API has no `response_format` for a JSON object without a schema. */
const JSON_INSTRUCTION =
  'Answer with one JSON object and nothing else: no text before or after it, and no code fence around it.';

/** Stand in for the user's words, because the API requires a conversation to begin and end with the user. */
const OPENING = '(The conversation begins.)';
const CONTINUATION = 'Continue.';

const TEMPERATURE_MAX = 1;

const record = (value: unknown): Fields => (isRecord(value) ? value : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Base64 in a data URL. */
const DATA_URL = /^data:([^;,]*)[^,]*,/;

function sourceOf(url: string): Fields {
  const [head, type] = DATA_URL.exec(url) ?? [];
  return head === undefined ? { type: 'url', url } : { type: 'base64', media_type: type, data: url.slice(head.length) };
}

/** A text, image or file of OpenAI's messages; undefined: it says nothing, which the API refuses. */
function toBlock(part: unknown): Fields | undefined {
  const { text, image_url: image, file } = record(part);
  if (image !== undefined) return { type: 'image', source: sourceOf(textIn(record(image)['url'])) };
  if (file === undefined) return textIn(text).trim() === '' ? undefined : { type: 'text', text };
  const { file_data: data, filename } = record(file);
  const source = sourceOf(textIn(data));
  return { type: 'document', source, ...(typeof filename === 'string' ? { title: filename } : {}) };
}

function blocksOfContent(content: unknown): Fields[] {
  const parts = typeof content === 'string' ? [{ text: content }] : list(content);
  return parts.map(toBlock).filter((block) => block !== undefined);
}

function inputOf(json: unknown): unknown {
  try {
    const input: unknown = JSON.parse(textIn(json));
    return isRecord(input) ? input : {};
  } catch {
    // The model's own mistake, or its caller's; the API takes objects only.
    return {};
  }
}

function blocksOf({ content: text, sent = { content: text } }: ChatMessage): Fields[] {
  const { role, content, tool_calls: calls, tool_call_id: id } = sent;
  const blocks = blocksOfContent(content);
  if (role === 'tool')
    return [{ type: 'tool_result', tool_use_id: id, ...(blocks.length > 0 ? { content: blocks } : {}) }];
  const uses = list(calls).map((call) => {
    const { name, arguments: json } = record(record(call)['function']);
    return { type: 'tool_use', id: record(call)['id'], name, input: inputOf(json) };
  });
  return [...blocks, ...uses];
}

/** Text, or blocks where a message has more than that. */
function contentOf(row: Row): string | Fields[] {
  return row.messages.some(({ sent }) => sent !== undefined) ? row.messages.flatMap(blocksOf) : textOfRow(row);
}

/** OpenAI's `tool_choice` as that of the API; undefined: the API's default. */
function choiceOf({ tool_choice: choice, parallel_tool_calls: parallel }: Fields): Fields | undefined {
  const { function: called, allowed_tools: allowed } = record(choice);
  const word = isRecord(allowed) ? allowed['mode'] : choice;
  const { name } = record(called);
  const one = parallel === false ? { disable_parallel_tool_use: true } : {};
  if (name !== undefined) return { type: 'tool', name, ...one };
  if (word === 'none') return { type: 'none' };
  if (word === 'required') return { type: 'any', ...one };
  return parallel === false ? { type: 'auto', ...one } : undefined;
}

/** The names of the tools that the caller allows of those it offers; undefined: all. */
function allowedOf({ tool_choice: choice }: Fields): unknown[] | undefined {
  const { allowed_tools: allowed } = record(choice);
  if (!isRecord(allowed)) return undefined;
  return list(allowed['tools']).map((tool) => record(record(tool)['function'])['name']);
}

const NO_PARAMETERS = { type: 'object', properties: {} };

/** OpenAI's tools as those of the API, which wants them for calls in the conversation, too. */
function toolFields(passed: Passed, messages: readonly ChatMessage[]): Fields {
  if (!offersTools(passed)) {
    if (!messages.some(({ sent }) => sent !== undefined)) return {};
    const uses = messages.flatMap((message) => (message.sent === undefined ? [] : blocksOf(message)));
    const names = new Set(uses.flatMap(({ type, name }) => (type === 'tool_use' ? [name] : [])));
    const tools = [...names].map((name) => ({ name, input_schema: NO_PARAMETERS }));
    return tools.length === 0 ? {} : { tools, tool_choice: { type: 'none' } };
  }
  const allowed = allowedOf(passed ?? {});
  const { tools: given, functions } = passed ?? {};
  const offered = [...list(given).map((tool) => record(tool)['function']), ...list(functions)].map(record);
  const tools = offered.flatMap(({ name, description, parameters }) =>
    allowed?.includes(name) === false
      ? []
      : [{ name, ...(description === undefined ? {} : { description }), input_schema: parameters ?? NO_PARAMETERS }],
  );
  const choice = choiceOf(passed ?? {});
  return { tools, ...(choice === undefined ? {} : { tool_choice: choice }) };
}

function systemOf(system: Row, jsonMode: boolean): string {
  const texts = system.messages.map(({ content }) => content);
  return [...texts, ...(jsonMode ? [JSON_INSTRUCTION] : [])].join(BETWEEN_JOINED);
}

/**
 * Turns that alternate, beginning and ending with the user: consecutive messages of one role are joined, OPENING goes
 * in front if the user does not speak first, and CONTINUATION follows if the assistant speaks last, because current
 * models refuse to continue an answer begun for them.
 */
function turnsOf(rows: readonly Row[]): Turn[] {
  const turns: Turn[] = rows.map((row) => ({ role: row.role, content: contentOf(row) }));
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: OPENING });
  if (turns.at(-1)?.role === 'assistant') turns.push({ role: 'user', content: CONTINUATION });
  return turns;
}

/** The texts that end the answer. */
function stopsOf(passed: Passed): string[] {
  return [passed?.['stop']].flat().filter((stop) => typeof stop === 'string');
}

/** The stop sequences that the API does not accept. */
const blankStops = (passed: Passed) => stopsOf(passed).filter(isBlankText);

/** `seed` is not supported, and current models take only one of `temperature` and `top_p`: the temperature wins. */
function settingsOf(passed: Passed = {}): Record<string, unknown> {
  const { temperature, top_p: topP, user } = passed;
  const stops = stopsOf(passed).filter((text) => !isBlankText(text));
  return {
    ...(typeof temperature === 'number' ? { temperature: Math.min(temperature, TEMPERATURE_MAX) } : {}),
    ...(topP === undefined || temperature !== undefined ? {} : { top_p: topP }),
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
  };
}

/** The JSON body of `POST /messages`. */
export function toMessagesBody(call: ProviderCall): string {
  // The API refuses text blocks of nothing but white space; joinRoles leaves these out.
  const { system: systemRow, turns } = joinRoles(call.messages);
  const system = systemOf(systemRow, call.jsonMode);
  return wellFormedJson({
    model: call.model,
    max_tokens: call.maxTokens,
    ...(system === '' ? {} : { system }),
    messages: turnsOf(turns),
    ...settingsOf(call.passed),
    ...toolFields(call.passed, call.messages),
    ...(call.stream ? { stream: true } : {}),
  });
}

export function anthropicHeaders({ apiKey }: Provider): Record<string, string> {
  return { 'anthropic-version': API_VERSION, ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
}

function tellReasoning(text: string, sink: ProviderSink): void {
  if (text !== '') sink({ kind: 'delta', ...toDelta({ reasoning_content: text }) });
}

function toolless(): ProviderError {
  return new ProviderError('transient', 'The provider stopped for a call of a tool that it did not send');
}

function cutShort(): ProviderError {
  return new ProviderError('transient', 'The provider ended its stream before the end of its answer');
}

/** Tells a stream's calls of tools as the deltas of OpenAI's streams. */
function openCalls(sink: ProviderSink) {
  const calls = new Map<unknown, { index: number; hasArguments: boolean }>();
  const tell = (call: Fields) => {
    sink({ kind: 'delta', ...toDelta({ tool_calls: [call] }) });
  };
  function proceed(block: unknown, json: string): void {
    const call = calls.get(block);
    if (call === undefined || json === '') return;
    call.hasArguments = true;
    tell({ index: call.index, function: { arguments: json } });
  }
  return {
    count: () => calls.size,
    begin(block: unknown, call: Fields): void {
      const index = calls.size;
      const { arguments: given } = call['function'] as Fields;
      calls.set(block, { index, hasArguments: given !== '' });
      tell({ index, ...call });
    },
    proceed,
    /** A tool without parameters gets no input. */
    end(block: unknown): void {
      if (calls.get(block)?.hasArguments === false) proceed(block, '{}');
    },
  };
}

function openStream(sink: ProviderSink, passed: Passed): ProviderStreamReader {
  const calls = openCalls(sink);
  let finishReason: FinishReason | undefined;
  let usage: AnthropicUsage = {};
  let model: string | undefined;
  let ended = false;
  function finish(): void {
    if (ended) return;
    if (finishReason === undefined) throw cutShort();
    if (finishReason === 'tool_calls' && calls.count() === 0) throw toolless();
    ended = true;
    sink({ kind: 'end', finishReason, usage: wholeUsage(usage), model });
  }
  function tell(event: AnthropicEvent): void {
    if (event.kind === 'text' && event.text !== '') sink(event);
    if (event.kind === 'reasoning') tellReasoning(event.text, sink);
    if (event.kind === 'call') calls.begin(event.block, event.call);
    if (event.kind === 'arguments') calls.proceed(event.block, event.json);
    if (event.kind === 'block_end') calls.end(event.block);
  }
  return {
    read(value) {
      if (ended) return;
      const event = parseEvent(value, passed);
      if (event.kind === 'progress') {
        finishReason = event.finishReason ?? finishReason;
        model ??= event.model;
        usage = laterUsage(usage, event.usage);
      } else if (event.kind === 'stop') finish();
      else tell(event);
    },
    // Compatible servers may say so in place of `message_stop`, or close without either.
    done: finish,
    end: finish,
    isWhole: () => finishReason !== undefined,
  };
}

function readComplete(json: string, sink: ProviderSink, passed: Passed): void {
  const { text, reasoning, calls, ...end } = parseMessage(parseObject(json), passed);
  if (end.finishReason === 'tool_calls' && calls.length === 0) throw toolless();
  tellReasoning(reasoning, sink);
  if (text !== '') sink({ kind: 'text', text });
  if (calls.length > 0) sink({ kind: 'delta', ...toDelta({ tool_calls: calls }) });
  sink({ kind: 'end', ...end });
}

/** Anthropic's Messages API and servers that speak it; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createAnthropicAdapter(http: HttpClient): ProviderAdapter {
  const endpointOf = perProvider((provider) =>
    createEndpoint(endpointUrl(provider.baseUrl, '/messages'), anthropicHeaders(provider)),
  );
  return {
    generate: async (provider, call, sink) => {
      const stops = blankStops(call.passed);
      const exchange = { endpoint: endpointOf(provider), body: toMessagesBody(call), openStream, readComplete };
      await callProvider(http, call, exchange, stops.length === 0 ? sink : cutAtBlank(sink, stops));
    },
  };
}
