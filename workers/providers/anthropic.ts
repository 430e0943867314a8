import type { ChatRequest, Role } from '../../shared/contracts/chat-request.ts';
import type { Usage } from '../../shared/contracts/events.ts';
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
import { ProviderError, perProvider } from './provider.ts';
import type { ProviderAdapter, ProviderCall, ProviderSink } from './provider.ts';

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
    if (event.kind === 'end') {
      show(held);
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

/** What one event of a stream means to this service. */
export type AnthropicEvent =
  | { kind: 'text'; text: string }
  | { kind: 'progress'; finishReason: FinishReason | undefined; usage: AnthropicUsage; model?: string | undefined }
  | { kind: 'stop' }
  | { kind: 'other' };

export interface AnthropicMessage {
  text: string;
  finishReason: FinishReason;
  usage: Usage | undefined;
  model: string | undefined;
}

/** `pause_turn` and `tool_use` wait for a next step that this service never takes; an unknown reason may do so, too. */
function toFinishReason(word: unknown): FinishReason | undefined {
  const meaning = readFinishReason(word);
  if (meaning !== 'tool' && meaning !== 'unknown') return meaning;
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
  return { promptTokens: input + cacheCreation + cacheRead, completionTokens: output };
}

function textOf(block: unknown, type: 'text' | 'text_delta'): string {
  return isRecord(block) && block['type'] === type && typeof block['text'] === 'string' ? block['text'] : '';
}

/** Reads one event. Throws a ProviderError for an error. */
export function parseEvent(event: Record<string, unknown>): AnthropicEvent {
  switch (event['type']) {
    case 'message_start': {
      // Its output count covers only the beginning; without a later figure, there is no output count.
      const message = isRecord(event['message']) ? event['message'] : {};
      const usage = toUsage(message['usage']);
      delete usage.output;
      return { kind: 'progress', finishReason: undefined, usage, model: modelName(message['model']) };
    }
    case 'content_block_start':
      return { kind: 'text', text: textOf(event['content_block'], 'text') };
    case 'content_block_delta':
      return { kind: 'text', text: textOf(event['delta'], 'text_delta') };
    case 'message_delta': {
      const delta = isRecord(event['delta']) ? event['delta'] : {};
      const usage = toUsage(event['usage'] ?? delta['usage']);
      return { kind: 'progress', finishReason: toFinishReason(delta['stop_reason']), usage };
    }
    case 'message_stop':
      return { kind: 'stop' };
    case 'error':
      throw errorInAnswer(event['error']);
    default: {
      const error = errorOf(event, typeof event['type'] === 'string');
      if (error !== undefined) throw errorInAnswer(error);
      // `ping`, `content_block_stop`, and whatever the API may add: clients are to ignore unknown events.
      return { kind: 'other' };
    }
  }
}

/** Reads a complete answer. Throws a ProviderError on anything else. */
export function parseMessage(message: Record<string, unknown>): AnthropicMessage {
  const content = message['content'];
  const error = message['type'] === 'error' ? message['error'] : errorOf(message, Array.isArray(content));
  if (error !== undefined) throw errorInAnswer(error);
  if (!Array.isArray(content)) throw new ProviderError('transient', 'The provider sent an answer without content');
  const finishReason = toFinishReason(message['stop_reason']);
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider sent an answer without a stop reason');
  const text = content.map((block: unknown) => textOf(block, 'text')).join('');
  return { text, finishReason, usage: wholeUsage(toUsage(message['usage'])), model: modelName(message['model']) };
}

/** The version of the Messages API that this adapter was written for. */
const API_VERSION = '2023-06-01';

type Turn = { role: Role; content: string };

/** The API has no `response_format` for a JSON object without a schema. */
const JSON_INSTRUCTION =
  'Answer with one JSON object and nothing else: no text before or after it, and no code fence around it.';

/** Stand in for the user's words, because the API requires a conversation to begin and end with the user. */
const OPENING = '(The conversation begins.)';
const CONTINUATION = 'Continue.';

const TEMPERATURE_MAX = 1;

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
  const turns: Turn[] = rows.map((row) => ({ role: row.role, content: textOfRow(row) }));
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: OPENING });
  if (turns.at(-1)?.role === 'assistant') turns.push({ role: 'user', content: CONTINUATION });
  return turns;
}

type Passed = ChatRequest['passed'];

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
    ...(call.stream ? { stream: true } : {}),
  });
}

export function anthropicHeaders({ apiKey }: Provider): Record<string, string> {
  return { 'anthropic-version': API_VERSION, ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
}

function cutShort(): ProviderError {
  return new ProviderError('transient', 'The provider ended its stream before the end of its answer');
}

function openStream(sink: ProviderSink): ProviderStreamReader {
  let finishReason: FinishReason | undefined;
  let usage: AnthropicUsage = {};
  let model: string | undefined;
  let ended = false;
  function finish(): void {
    if (ended) return;
    if (finishReason === undefined) throw cutShort();
    ended = true;
    sink({ kind: 'end', finishReason, usage: wholeUsage(usage), model });
  }
  return {
    read(value) {
      if (ended) return;
      const event = parseEvent(value);
      if (event.kind === 'text' && event.text !== '') sink(event);
      if (event.kind === 'progress') {
        finishReason = event.finishReason ?? finishReason;
        model ??= event.model;
        usage = laterUsage(usage, event.usage);
      }
      if (event.kind === 'stop') finish();
    },
    // Compatible servers may say so in place of `message_stop`, or close without either.
    done: finish,
    end: finish,
    isWhole: () => finishReason !== undefined,
  };
}

function readComplete(json: string, sink: ProviderSink): void {
  const { text, ...end } = parseMessage(parseObject(json));
  if (text !== '') sink({ kind: 'text', text });
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
