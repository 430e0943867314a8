import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { toDelta, withKinds } from '../../shared/contracts/events.ts';
import type { Fields } from '../../shared/contracts/events.ts';
import { isRecord, wellFormedJson } from '../../shared/contracts/parse.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import { createEndpoint } from './http-call.ts';
import type { HttpClient } from './http-client.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import { callProvider, modelName, parseObject, plainWord, readFinishReason, tokenCount } from './call-provider.ts';
import type { FinishReason, ProviderStreamReader } from './call-provider.ts';
import { errorInAnswer, errorOf, ProviderError, offersTools, perProvider } from './provider.ts';
import type { ProviderAdapter, ProviderCall, ProviderEvent, ProviderSink, ReportedUsage } from './provider.ts';
import { endpointUrl } from './post-to-provider.ts';

const JSON_INSTRUCTION: ChatMessage = { role: 'system', content: 'Answer with one JSON object and nothing else.' };

/** OpenAI and Azure refuse `json_object` unless a message says "JSON", which callers of `json_mode` need not know. */
function withJsonWord(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.some(({ content }) => /json/i.test(content)) ? messages : [JSON_INSTRUCTION, ...messages];
}

const OPENAI = /^https?:\/\/(([^/]+\.)?api\.openai\.com\/|[^/]+\.openai\.azure\.com\/openai\/v1\b)/;
/** OpenAI's own reasoning models, also at Azure, refuse `max_tokens`; most compatible servers know no other field. */
const lengthFieldOf = perProvider(({ baseUrl }) =>
  OPENAI.test(URL.parse(baseUrl)?.href ?? '') ? 'max_completion_tokens' : 'max_tokens',
);

const MISTRAL = /(^|\.)mistral\.ai$/;
/** Asks for usage, which most streams do not report by default. Mistral's do, and it refuses the question with 422. */
const streamFieldsOf = perProvider(({ baseUrl }) =>
  MISTRAL.test(URL.parse(baseUrl)?.hostname ?? '')
    ? { stream: true }
    : { stream: true, stream_options: { include_usage: true } },
);

/** The JSON body of `POST /chat/completions`. */
export function toChatCompletionBody(provider: Provider, call: ProviderCall): string {
  const messages = call.jsonMode ? withJsonWord(call.messages) : call.messages;
  return wellFormedJson({
    // Wins over none of the fields below.
    ...call.passed,
    model: call.model,
    messages: messages.map(({ role, content, sent }) => sent ?? { role, content }),
    [lengthFieldOf(provider)]: call.maxTokens,
    ...(call.jsonMode ? { response_format: { type: 'json_object' } } : {}),
    ...(call.schema === undefined ? {} : { response_format: { type: 'json_schema', json_schema: call.schema } }),
    ...(call.stream ? streamFieldsOf(provider) : {}),
  });
}

/** Azure's URLs with an `api-version` take the key in their own header; a bearer token means something else there. */
export function openAiHeaders({ baseUrl, apiKey }: Provider): Record<string, string> {
  if (apiKey === undefined) return {};
  const isAzure = URL.parse(baseUrl)?.searchParams.has('api-version') === true;
  return isAzure ? { 'api-key': apiKey } : { Authorization: `Bearer ${apiKey}` };
}

export interface Completion extends ReadFacts, Besides {
  text: string;
  isDelta: boolean;
}

interface ReadEnd {
  finishReason: FinishReason | undefined;
  unknownReason: string | undefined;
}

interface ReadFacts extends ReadEnd {
  usage: ReportedUsage | undefined;
  model: string | undefined;
  isRefusal: boolean;
}

/** Deltas that the caller of OpenAI's API gets besides the text: reasoning comes before it, the others behind it. */
interface Besides {
  before: Fields | undefined;
  behind: Fields[];
  /** Fields that belong to the text in its choice. */
  beside: Fields | undefined;
}

const PROMPT = ['prompt_tokens', 'input_tokens'];
const COMPLETION = ['completion_tokens', 'output_tokens'];

/** A part of a count, from the details in either API's words; 0: the provider does not say. */
function partOf(usage: Record<string, unknown>, counts: readonly string[], ...parts: readonly string[]): number {
  const details = counts.map((count) => usage[`${count}_details`]).find(isRecord);
  return parts.map((part) => tokenCount(details?.[part])).find((tokens) => tokens !== undefined) ?? 0;
}

/**
 * Reads the counts, in the words of chat completions or the Responses API. A part (xAI's reasoning, some gateways'
 * cached tokens) stands beside its count, not inside, if only then everything adds up to the total or, where no total
 * decides, if the part is larger. Google names no reasoning: it is what the total has beyond the counts.
 */
function toUsage(value: unknown): ReportedUsage | undefined {
  if (!isRecord(value)) return undefined;
  const prompt = tokenCount(value['prompt_tokens'] ?? value['input_tokens']);
  const completion = tokenCount(value['completion_tokens'] ?? value['output_tokens']);
  if (prompt === undefined || completion === undefined) return undefined;
  // DeepSeek and some gateways put cached tokens beside the counts.
  const besides = [value['prompt_cache_hit_tokens'], value['cache_read_input_tokens']].map(tokenCount);
  const cached = partOf(value, PROMPT, 'cached_tokens') || (besides.find((tokens) => tokens !== undefined) ?? 0);
  const writtenBeside = tokenCount(value['cache_creation_input_tokens']) ?? 0;
  const written = partOf(value, PROMPT, 'cache_write_tokens', 'cache_creation_tokens') || writtenBeside;
  const reasoning = partOf(value, COMPLETION, 'reasoning_tokens');
  const unexplained = (tokenCount(value['total_tokens']) ?? NaN) - prompt - completion;
  const cachedBeside = cached > prompt ? cached : 0;
  const unnamed = reasoning === 0 && unexplained > cachedBeside ? unexplained - cachedBeside : 0;
  const ofPrompt = [0, cached, written, cached + written];
  const ways = ofPrompt.flatMap((beside) => [[beside, 0] as const, [beside, reasoning] as const]);
  const [promptBeside, reasoningBeside] = ways.find((beside) => beside[0] + beside[1] === unexplained) ?? [
    cachedBeside,
    reasoning > completion ? reasoning : unnamed,
  ];
  return withKinds(
    { promptTokens: prompt + promptBeside, completionTokens: completion + reasoningBeside },
    {
      cachedTokens: cached,
      cacheWriteTokens: written,
      promptAudioTokens: partOf(value, PROMPT, 'audio_tokens'),
      reasoningTokens: reasoning || reasoningBeside,
      completionAudioTokens: partOf(value, COMPLETION, 'audio_tokens'),
    },
  );
}

/** The first count that is not zero of those on top, of Groq's field and of the choice (Moonshot), or else a zero. */
function usageIn(...places: readonly unknown[]): ReportedUsage | undefined {
  let zero: ReportedUsage | undefined;
  for (const place of places) {
    const usage = isRecord(place) ? toUsage(place['usage']) : undefined;
    if (usage === undefined) continue;
    if (usage.completionTokens > 0) return usage;
    zero ??= usage;
  }
  return zero;
}

/** The content may be text, or a list of parts of which only those of type text count (Mistral's reasoning models). */
function toText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content.map((part: unknown) => (isRecord(part) && part['type'] === 'text' ? part['text'] : ''));
  return parts.filter((text) => typeof text === 'string').join('');
}

const NO_END: ReadEnd = { finishReason: undefined, unknownReason: undefined };

/** Takes a word that is not known for an ordinary end, which the log mentions. */
function readEnding(choice: Record<string, unknown>): ReadEnd {
  // Servers of Gemini's kind write it in camel case; OpenRouter may give the model's own word alone.
  const word = choice['finish_reason'] ?? choice['finishReason'] ?? choice['native_finish_reason'];
  const meaning = readFinishReason(word);
  if (meaning === undefined) return NO_END;
  if (meaning !== 'unknown') return { finishReason: meaning, unknownReason: undefined };
  return { finishReason: 'stop', unknownReason: plainWord(String(word)) };
}

const REASONING = ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking'];
const CALLS = ['tool_calls', 'function_call'];
const OTHERS = ['refusal', 'audio', 'annotations'];
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const saysSomething = (value: unknown) => isText(value) || (Array.isArray(value) ? value.length > 0 : isRecord(value));

function pick(said: Fields, names: readonly string[]): Fields | undefined {
  const present = names.filter((name) => saysSomething(said[name]));
  return present.length === 0 ? undefined : Object.fromEntries(present.map((name) => [name, said[name]]));
}

function isWhole(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}

/**
 * Gives each call of an answer its place, and the id, type and arguments that its server leaves out. Behind the first
 * piece some servers repeat id, type and name, which OpenAI's client joins, or write them as null or '', which it takes
 * for another call.
 */
function createCallReader() {
  let count = 0;
  /** By the server's index. */
  const calls = new Map<unknown, { place: number; id: string; name: string; json: string }>();
  return ({ id, type, index: given, ...fields }: Fields, position: number): Fields => {
    const index = given ?? position;
    const kind = isRecord(fields['custom']) ? 'custom' : 'function';
    const { name, arguments: piece, ...words }: Fields = isRecord(fields[kind]) ? fields[kind] : {};
    const json = isRecord(piece) ? JSON.stringify(piece) : isText(piece) ? piece : '';
    const known = calls.get(index);
    // Gemini's server gives every call the index 0, others give no ids; vLLM's has given each piece an id, but no name.
    const isOther = ({ id: before, name: called, json: said }: NonNullable<typeof known>) =>
      isText(id) ? id !== before : (name !== called || json !== '') && isWhole(said);
    const isNext = known === undefined || (isText(name) && isOther(known));
    const call = isNext ? { place: count++, id: isText(id) ? id : newId('call'), name: '', json: '' } : known;
    const told = {
      ...(isText(name) && name !== call.name ? { name } : {}),
      ...(json !== '' || (isNext && kind === 'function') ? { arguments: json } : {}),
      ...words,
    };
    calls.set(index, { ...call, name: call.name + (told.name ?? ''), json: call.json + json });
    const begun = isNext ? { id: call.id, type: isText(type) ? type : kind } : {};
    return { index: call.place, ...begun, ...fields, ...(isRecord(fields[kind]) ? { [kind]: told } : {}) };
  };
}

type BesidesReader = (choice: Fields, said: Fields) => Besides;

/** Reads the deltas that a caller of OpenAI's API gets besides the text. Calls of tools count only where tools were offered. */
function createBesidesReader(passed: ProviderCall['passed']): BesidesReader | undefined {
  if (passed === undefined) return undefined;
  const readCall = createCallReader();
  const callsOf = ({ tool_calls: list, function_call: call }: Fields): Fields => ({
    tool_calls: Array.isArray(list) ? list.filter(isRecord).map(readCall) : undefined,
    function_call: call,
  });
  return (choice, said) => {
    const calls = offersTools(passed) ? pick(callsOf(said), CALLS) : undefined;
    const behind = [pick(said, OTHERS), calls].filter((fields) => fields !== undefined);
    return { before: pick(said, REASONING), behind, beside: pick(choice, ['logprobs']) };
  };
}

const NO_BESIDES: Besides = { before: undefined, behind: [], beside: undefined };

/** Only one choice was asked for, but some servers give more, each with its index. */
const isFirst = (choice: Fields) => Number(choice['index'] ?? 0) === 0;

/** `either`: a chunk's `delta`, or the message of a server that has none. Throws a ProviderError on anything else. */
export function parseCompletion(
  value: Record<string, unknown>,
  part: 'delta' | 'message' | 'either',
  readBesides?: BesidesReader,
): Completion {
  const choices: unknown = value['choices'];
  // Groq puts usage, and an error inside a stream, into its own field.
  const groq = isRecord(value['x_groq']) ? value['x_groq'] : undefined;
  const error = errorOf(value, Array.isArray(choices)) ?? (groq && errorOf(groq, true));
  if (error !== undefined) throw errorInAnswer(error);
  const choice = Array.isArray(choices) ? choices.filter(isRecord).find(isFirst) : undefined;
  const usage = usageIn(value, groq, choice);
  const model = modelName(value['model']);
  if (choice === undefined) {
    if (part === 'message') throw new ProviderError('transient', 'The provider sent an answer without a choice');
    // Usage alone, or a heartbeat.
    return { text: '', isDelta: false, usage, model, isRefusal: false, ...NO_BESIDES, ...NO_END };
  }
  const { delta, message } = choice;
  const isDelta = part !== 'message' && isRecord(delta);
  const said = isDelta ? delta : part !== 'delta' && isRecord(message) ? message : {};
  const text = toText(said['content']);
  // Callers of OpenAI's API get it as such.
  const refusal =
    text === '' && readBesides === undefined && typeof said['refusal'] === 'string' ? said['refusal'] : '';
  const besides = readBesides?.(choice, said) ?? NO_BESIDES;
  return { text: text || refusal, isDelta, usage, model, isRefusal: refusal !== '', ...besides, ...readEnding(choice) };
}

interface Read extends ReadFacts {
  hasText: boolean;
  hasCalls: boolean;
}

function tell({ text, before, behind, beside }: Completion, sink: ProviderSink): void {
  if (before !== undefined) sink({ kind: 'delta', ...toDelta(before) });
  if (beside !== undefined) sink({ kind: 'delta', ...toDelta({ content: text }, beside) });
  else if (text !== '') sink({ kind: 'text', text });
  for (const fields of behind) sink({ kind: 'delta', ...toDelta(fields) });
}

const saysMore = ({ before, behind, beside }: Completion) =>
  behind.length > 0 || before !== undefined || beside !== undefined;

const isCall = (fields: Fields) => CALLS.some((name) => name in fields);

function endOf({ finishReason, usage, model, hasText, hasCalls, isRefusal, unknownReason }: Read): ProviderEvent {
  // A stream that ends without a finish reason was cut: an error, never success (docs/spec.md#routing).
  if (finishReason === undefined)
    throw new ProviderError('transient', 'The provider ended its answer without a finish reason');
  const isOddCall = finishReason === 'tool_calls' && !hasCalls;
  if (isOddCall && !hasText)
    throw new ProviderError('transient', 'The provider answered with a tool call, although no tool was offered');
  // OpenAI itself says `stop` where the caller has named the tool.
  const called = finishReason === 'stop' && hasCalls ? 'tool_calls' : finishReason;
  const reason = isOddCall ? 'stop' : called;
  return {
    kind: 'end',
    finishReason: isRefusal && reason === 'stop' ? 'content_filter' : reason,
    usage,
    model,
    ...(unknownReason === undefined ? {} : { unknownReason }),
  };
}

const NOTHING_READ: Read = {
  finishReason: undefined,
  usage: undefined,
  model: undefined,
  hasText: false,
  hasCalls: false,
  isRefusal: false,
  unknownReason: undefined,
};

function openStream(sink: ProviderSink, passed: ProviderCall['passed']): ProviderStreamReader {
  const end: Read = { ...NOTHING_READ };
  const readBesides = createBesidesReader(passed);
  /** Text has followed a finish reason: this server gives one with every chunk. */
  let isEarly = false;
  /** A delta has said something: a message behind it repeats the whole answer, as MiniMax does. */
  let hasDeltas = false;
  let isDone = false;
  let ended = false;
  function finish(): void {
    if (ended) return;
    const event = endOf(end);
    ended = true;
    sink(event);
  }
  function onSaid(chunk: Completion): void {
    isEarly ||= end.finishReason !== undefined;
    hasDeltas ||= chunk.isDelta;
    end.hasText ||= chunk.text !== '';
    end.hasCalls ||= chunk.behind.some(isCall);
    tell(chunk, sink);
  }
  return {
    read(event) {
      if (ended) return;
      const chunk = parseCompletion(event, hasDeltas ? 'delta' : 'either', readBesides);
      // Called first: if the sink throws, the text of this chunk has not been taken, so the answer is not whole.
      if (chunk.text !== '' || saysMore(chunk)) onSaid(chunk);
      // Zeros behind a count are none.
      if (chunk.usage?.completionTokens !== 0 || !end.usage?.completionTokens) end.usage = chunk.usage ?? end.usage;
      end.model ??= chunk.model;
      end.finishReason = chunk.finishReason ?? end.finishReason;
      end.isRefusal ||= chunk.isRefusal;
      end.unknownReason ??= chunk.unknownReason;
      if (isDone && end.usage !== undefined) finish();
    },
    done() {
      isDone = true;
      // Some servers send their count behind it.
      if (end.usage !== undefined || end.finishReason === undefined) finish();
    },
    end: finish,
    isWhole: () => ended || (end.finishReason !== undefined && (isDone || !isEarly)),
  };
}

function readComplete(json: string, sink: ProviderSink, passed: ProviderCall['passed']): void {
  const answer = parseCompletion(parseObject(json), 'message', createBesidesReader(passed));
  const end = endOf({ ...answer, hasText: answer.text !== '', hasCalls: answer.behind.some(isCall) });
  tell(answer, sink);
  sink(end);
}

/** Written as numbers, 10 MiB of base64 have some 40 MB. */
const VECTORS_BYTES_MAX = 48 * 1024 * 1024;

/** The JSON body of `POST /embeddings`. */
function toEmbeddingsBody({ model, messages, task, passed }: ProviderCall): string {
  return wellFormedJson({
    model,
    input: messages.map(({ content }) => content),
    encoding_format: task?.encoding,
    ...(task?.dimensions === undefined ? {} : { dimensions: task.dimensions }),
    ...passed,
  });
}

/** Reads a list of numbers, or base64 of 32-bit floats; empty: it is neither. */
function floatsOf(vector: unknown): Float32Array<ArrayBuffer> {
  if (Array.isArray(vector)) return new Float32Array(vector.every((each) => typeof each === 'number') ? vector : []);
  const isCoded = typeof vector === 'string' && /^[A-Za-z0-9+/]+={0,2}$/.test(vector);
  const bytes = new Uint8Array(Buffer.from(isCoded ? vector : '', 'base64'));
  return new Float32Array(bytes.length % Float32Array.BYTES_PER_ELEMENT === 0 ? bytes.buffer : []);
}

/** A vector as base64 of 32-bit floats, in whichever form the server sends it. Throws a ProviderError. */
function vectorOf(item: unknown): string {
  const floats = floatsOf(isRecord(item) ? item['embedding'] : undefined);
  // A number that is too large for 32 bits is infinite by now.
  if (floats.length === 0 || !floats.every((float) => Number.isFinite(float)))
    throw new ProviderError('transient', 'The provider sent something else than a vector');
  return Buffer.from(floats.buffer).toString('base64');
}

function readEmbeddings({ messages, task, model }: ProviderCall) {
  return (json: string, sink: ProviderSink): void => {
    const value = parseObject(json);
    const error = errorOf(value, Array.isArray(value['data']));
    if (error !== undefined) throw errorInAnswer(error);
    const { data, usage } = value;
    if (!Array.isArray(data) || data.length !== messages.length)
      throw new ProviderError('transient', 'The provider did not send a vector for each input');
    const placeOf = (item: unknown) => (isRecord(item) && typeof item['index'] === 'number' ? item['index'] : 0);
    const vectors = data.toSorted((a, b) => placeOf(a) - placeOf(b)).map(vectorOf);
    sink({ kind: 'text', text: [task?.encoding, ...vectors].join(' ') });
    const promptTokens = isRecord(usage) ? tokenCount(usage['prompt_tokens'] ?? usage['total_tokens']) : undefined;
    const counted = promptTokens === undefined ? undefined : { promptTokens, completionTokens: 0 };
    sink({ kind: 'end', finishReason: 'stop', usage: counted, model: modelName(value['model']) ?? model });
  };
}

/** Any OpenAI-compatible server; `baseUrl` ends in its version segment, as in `https://host/v1`. */
export function createOpenAiAdapter(http: HttpClient): ProviderAdapter {
  const endpointAt = (path: string) =>
    perProvider((provider) => createEndpoint(endpointUrl(provider.baseUrl, path), openAiHeaders(provider)));
  const [completionsOf, embeddingsOf] = [endpointAt('/chat/completions'), endpointAt('/embeddings')];
  return {
    embed: (provider, call, sink) => {
      const exchange = { endpoint: embeddingsOf(provider), body: toEmbeddingsBody(call), openStream };
      const readComplete = readEmbeddings(call);
      return callProvider(http, call, { ...exchange, readComplete, answerBytesMax: VECTORS_BYTES_MAX }, sink);
    },
    generate: async (provider, call, sink) => {
      const [endpoint, body] = [completionsOf(provider), toChatCompletionBody(provider, call)];
      await callProvider(http, call, { endpoint, body, openStream, readComplete }, sink);
    },
  };
}
