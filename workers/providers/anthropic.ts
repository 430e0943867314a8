import type { ChatRequest } from '../../shared/contracts/chat-request.ts';
import { toDelta, withKinds } from '../../shared/contracts/events.ts';
import type { Fields, Usage } from '../../shared/contracts/events.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import { createEndpoint } from './http-call.ts';
import type { HttpClient } from './http-client.ts';
import { blankStops, textIn, toMessagesBody } from './anthropic-request.ts';
import { callProvider, modelName, parseObject, plainWord, readFinishReason, tokenCount } from './call-provider.ts';
import type { FinishReason, ProviderStreamReader } from './call-provider.ts';
import { errorInAnswer, errorOf, ProviderError, offersTools, perProvider } from './provider.ts';
import type { ProviderAdapter, ProviderSink } from './provider.ts';
import { EnoughError, endpointUrl } from './post-to-provider.ts';

type Passed = ChatRequest['passed'];

/**
 * Ends the answer, and with it the call, before the first of `stops`, which are all blank. Holds back only white space
 * that may begin one. A cut answer reports no usage: the provider's count includes the text after the cut.
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
 * Takes a later event's figures as totals, not increments. The prompt's figures go together, and only if they are not
 * all zero: SGLang, for one, sends zeros for a prompt that its first event has counted.
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

function toCall({ id, name, input }: Fields): Fields {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

/** Reads the begin of a block, or a part of one. Callers of plain text get neither reasoning nor calls of tools. */
function parseBlock({ index: block, content_block: begun, delta }: Fields, passed: Passed): AnthropicEvent {
  const part = isRecord(delta) ? delta : isRecord(begun) ? begun : {};
  const { type } = part;
  if (type === 'text' || type === 'text_delta') return { kind: 'text', text: textIn(part['text']) };
  if (passed === undefined) return { kind: 'other' };
  if (type === 'thinking' || type === 'thinking_delta') return { kind: 'reasoning', text: textIn(part['thinking']) };
  if (!offersTools(passed)) return { kind: 'other' };
  if (type === 'tool_use') return { kind: 'call', block, call: toCall(part) };
  return type === 'input_json_delta'
    ? { kind: 'arguments', block, json: textIn(part['partial_json']) }
    : { kind: 'other' };
}

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
    calls: calls.map((block, index) => ({ index, ...toCall(block) })),
    finishReason,
    usage: wholeUsage(toUsage(message['usage'])),
    model: modelName(message['model']),
  };
}

function tellReasoning(text: string, sink: ProviderSink): void {
  if (text !== '') sink({ kind: 'delta', ...toDelta({ reasoning_content: text }) });
}

/** Some servers end an answer with calls like any other. */
function reasonWith(calls: number, reason: FinishReason): FinishReason {
  if (reason === 'tool_calls' && calls === 0)
    throw new ProviderError('transient', 'The provider stopped for a call of a tool that it did not send');
  return reason === 'stop' && calls > 0 ? 'tool_calls' : reason;
}

function cutShort(): ProviderError {
  return new ProviderError('transient', 'The provider ended its stream before the end of its answer');
}

/** Tells a stream's calls of tools as the deltas of OpenAI's streams. */
function openCalls(sink: ProviderSink) {
  /** `given` is the input with which a block began: it counts unless later events give one. */
  const calls = new Map<unknown, { index: number; given: unknown; hasArguments: boolean }>();
  const tell = (call: Fields) => {
    sink({ kind: 'delta', ...toDelta({ tool_calls: [call] }) });
  };
  function proceed(block: unknown, json: unknown): void {
    const call = calls.get(block);
    if (call === undefined || json === '') return;
    call.hasArguments = true;
    tell({ index: call.index, function: { arguments: json } });
  }
  function end(block: unknown): void {
    const call = calls.get(block);
    if (call?.hasArguments === false) proceed(block, call.given);
  }
  return {
    count: () => calls.size,
    begin(block: unknown, call: Fields): void {
      const index = calls.size;
      const { name, arguments: given } = call['function'] as Fields;
      calls.set(block, { index, given, hasArguments: false });
      tell({ index, ...call, function: { name, arguments: '' } });
    },
    proceed,
    end,
    /** Some servers end no block. */
    endAll() {
      for (const block of calls.keys()) end(block);
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
    const reason = reasonWith(calls.count(), finishReason);
    calls.endAll();
    ended = true;
    sink({ kind: 'end', finishReason: reason, usage: wholeUsage(usage), model });
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
  const finishReason = reasonWith(calls.length, end.finishReason);
  tellReasoning(reasoning, sink);
  if (text !== '') sink({ kind: 'text', text });
  if (calls.length > 0) sink({ kind: 'delta', ...toDelta({ tool_calls: calls }) });
  sink({ kind: 'end', ...end, finishReason });
}

/** The version of the Messages API that this adapter was written for. */
const API_VERSION = '2023-06-01';

export function anthropicHeaders({ apiKey }: Provider): Record<string, string> {
  return { 'anthropic-version': API_VERSION, ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
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
