import type { AnswerSchema, ChatMessage, ChatRequest, Task, Role } from '../../shared/contracts/chat-request.ts';
import type { Delta, Usage } from '../../shared/contracts/events.ts';
import { isRecord } from '../../shared/contracts/parse.ts';
import type { HttpHead, ScheduleRead } from './http-call.ts';
import type { Provider } from '../../shared/domain/routing.ts';

export interface ProviderCall {
  /** Sent as a header, so that the provider's log can be joined with ours. */
  requestId: string;
  /** Sent as a header (W3C Trace Context). */
  traceparent?: string;
  messages: readonly ChatMessage[];
  model: string;
  maxTokens: number;
  jsonMode: boolean;
  passed?: ChatRequest['passed'];
  schema?: AnswerSchema;
  /** Of `embed`. */
  task?: Extract<Task, { kind: 'embedding' }>;
  /** Asks for a stream. A complete answer costs less without one: 2.1 against 2.8 ms of CPU. */
  stream: boolean;
  /** This call's own signal: aborting it ends the call. */
  signal: AbortSignal;
  onHead?: ((head: HttpHead) => void) | undefined;
  /** Called for every part of a body, text or not: it shows that the provider is not silent. */
  onBytes?: (() => void) | undefined;
  /** Join text that arrives together into fewer events. Only if nobody counts pieces as tokens. */
  joinsText?: boolean;
  /** The end of the body is waited for this long once the answer is whole; a second by default. */
  endWaitMs?: number;
  /** Called after each part of a stream's body: when to read the next part. Undefined: as soon as it arrives. */
  scheduleRead?: (() => ScheduleRead | undefined) | undefined;
}

/** A provider's count, all of its answer included; kinds of tokens if the provider tells them apart. */
export type ReportedUsage = Usage;

export interface ProviderEnd {
  finishReason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  usage: ReportedUsage | undefined;
  model?: string | undefined;
  /** The provider's word for the end, if it is one that this service does not know and takes for `stop`. */
  unknownReason?: string | undefined;
}

/** Events of a provider, in order: text and other deltas, then one end. */
export type ProviderEvent =
  { kind: 'text'; text: string } | ({ kind: 'delta' } & Delta) | ({ kind: 'end' } & ProviderEnd);

/** Takes events while the answer arrives. What it throws ends the call. */
export type ProviderSink = (event: ProviderEvent) => void;

export function offersTools({ tools, functions }: Readonly<Record<string, unknown>> = {}): boolean {
  return [tools, functions].some((list) => Array.isArray(list) && list.length > 0);
}

/** Speaks one provider's protocol. An answer without a finish reason is an error. */
export interface ProviderAdapter {
  /**
   * Makes one text of a vector of each message: how the caller wants them written, then each as base64 of 32-bit
   * floats, with a space in front. Absent: this protocol has no embeddings.
   */
  embed?(provider: Provider, call: ProviderCall, sink: ProviderSink): Promise<void>;
  /**
   * Resolves at the end of the body, which may come after the answer's own end. Rejects with a ProviderError, the
   * signal's reason or what `sink` threw.
   */
  generate(provider: Provider, call: ProviderCall, sink: ProviderSink): Promise<void>;
}

/** Makes a value once for each provider, whose object the routing table keeps while its settings are unchanged. */
export function perProvider<T>(make: (provider: Provider) => T): (provider: Provider) => T {
  const made = new WeakMap<Provider, { value: T }>();
  return (provider) => {
    const known = made.get(provider);
    if (known !== undefined) return known.value;
    const value = make(provider);
    made.set(provider, { value });
    return value;
  };
}

/**
 * Decides what follows a failed call (docs/spec.md#routing):
 * - `transient` (network, 408, 409, 429, 5xx): the same target may be tried again.
 * - `flawed`, the model's own mistake in a call or in JSON, which a caller can provoke: likewise.
 * - `silent`, nothing came within the time limit: likewise, but not while another target may answer.
 * - `refused` (401, 402, 403, or a wrong set-up), the provider will not serve us now: the next target is called.
 * - `blocked`, by a firewall that may object to this prompt alone: likewise.
 * - `full`, the provider serves other calls: this one waits for a place (workers/pipeline/capacities.ts).
 * - `too_long`, the prompt exceeds this model's window: another target's may be larger.
 * - `filtered` by the provider's content filter, `caller` (400, 413, 422): no other target is called.
 * `flawed`, `too_long`, `filtered` and `caller` do not count against the provider.
 */
export type ProviderFault =
  'transient' | 'flawed' | 'silent' | 'refused' | 'blocked' | 'full' | 'too_long' | 'filtered' | 'caller';

/** The failure of one call; for the operator, never shown to a caller. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly fault: ProviderFault;
  readonly status: number | undefined;
  readonly retryAfterMs: number;
  /** The provider said no, or was not reached: it has done no work. */
  readonly isRefusal: boolean;

  constructor(
    fault: ProviderFault,
    message: string,
    details: { status?: number; retryAfterMs?: number; isRefusal?: boolean; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.fault = fault;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs ?? 0;
    this.isRefusal = details.isRefusal ?? details.status !== undefined;
  }

  /** One that is full without a status was not called: it had no free place. */
  get wasAsked(): boolean {
    return this.fault !== 'full' || this.status !== undefined;
  }
}

export class OversizedError extends ProviderError {
  constructor(cause?: unknown) {
    super('transient', 'The provider sent an oversized answer', { cause });
  }
}

/** docs/spec.md#routing. */
export function faultOfStatus(status: number): ProviderFault {
  if (status === 408 || status === 409 || status === 429 || status >= 500) return 'transient';
  return status === 400 || status === 413 || status === 422 ? 'caller' : 'refused';
}

export interface Row<Message extends ChatMessage = ChatMessage> {
  role: Role;
  messages: Message[];
}

export const BETWEEN_JOINED = '\n\n';

export const textOfRow = ({ messages }: Row, read = ({ content }: ChatMessage) => content): string =>
  messages.map(read).join(BETWEEN_JOINED);

/**
 * Joins the most that an adapter may join: all system messages, and consecutive messages of one other role without
 * blank ones. Moderation reads the same rows, so no adapter can send a text that it has not read.
 */
export function joinRoles<Message extends ChatMessage>(
  messages: readonly Message[],
): { system: Row<Message>; turns: Row<Message>[] } {
  const system: Row<Message> = { role: 'system', messages: [] };
  const turns: Row<Message>[] = [];
  for (const message of messages) {
    if (message.content.trim() === '' && message.sent === undefined) continue;
    const role = message.role === 'tool' ? 'user' : message.role;
    const last = role === 'system' ? system : turns.at(-1);
    if (last?.role === role) last.messages.push(message);
    else turns.push({ role, messages: [message] });
  }
  return { system, turns };
}

/** The part of a provider's error that may be logged and acted on. */
interface ErrorReply {
  /** The provider's own word for the error, or `no code`. */
  word: string;
  /** The HTTP status that the error stands for, if it names one; inside a stream there is no other status. */
  status: number | undefined;
  /** A page for browsers, or Cloudflare's line: the answer is from a firewall, not from the API. */
  isPage?: true;
}

/** A word or number of the provider's own error list; anything else may quote the conversation, or our key. */
const ERROR_WORD = /^(?:[A-Za-z_.]{1,64}|\d{1,6})$/;

/** Words that mean the same as a status, for errors inside a stream (Anthropic's list, and OpenAI's). */
const STATUS_OF_WORD: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['content_filter', 400],
  ['content_policy_violation', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['billing_error', 402],
  ['insufficient_quota', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/** No money left, also said with 429 (OpenAI): no retry helps, but another provider may. */
const UNPAID_WORDS: ReadonlySet<string> = new Set(['insufficient_quota', 'billing_error']);
/** The prompt exceeds the model's window: OpenAI's word. */
const TOO_LONG = 'context_length_exceeded';
/** The provider's own moderation refuses the prompt: Azure's word and OpenAI's. */
const FILTERED = 'content_filter';
const FILTER_WORDS: ReadonlySet<string> = new Set([FILTERED, 'content_policy_violation']);
/** Groq's, with 400, where the model's call or JSON cannot be read. */
const FLAWED_WORDS: ReadonlySet<string> = new Set(['tool_use_failed', 'json_validate_failed']);

/** Errors that can only be recognized by their sentence, by our word for them. */
const SENTENCES: readonly (readonly [word: string, sentence: RegExp])[] = [
  // Anthropic.
  ['billing_error', /^Your credit balance is too low\b/],
  // Gemini and xAI, with 400.
  ['invalid_api_key', /^(?:API key not valid|Incorrect API key provided)\b/],
  // Anthropic, DeepSeek, xAI and OpenRouter; the last two say it with 403.
  [
    FILTERED,
    /^(?:Output blocked by content filtering policy|Content Exists Risk|Content violates usage guidelines|\S+ requires moderation on OpenRouter)\b/i,
  ],
  // Anthropic, Bedrock, SGLang, LM Studio, vLLM, llama.cpp, Gemini, xAI and TGI.
  [
    TOO_LONG,
    /\b(?:maximum (?:context|prompt) length|(?:prompt|input) is too long|longer than the model's context length|context length of only|exceeds? (?:the (?:available )?)?context (?:size|window|length|limit)|input token count .{0,40}exceeds the maximum|inputs` (?:tokens \+|must have less than))/i,
  ],
];

function isStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value <= 599;
}

function wordOfSentence(message: unknown): string | undefined {
  return SENTENCES.find(([, sentence]) => typeof message === 'string' && sentence.test(message))?.[0];
}

function isFlagged(metadata: unknown): boolean {
  return isRecord(metadata) && metadata['flagged_input'] !== undefined;
}

/** Reads the error object of an answer or of an event, in OpenAI's shape, Anthropic's or a plain one. */
function readError(error: unknown): ErrorReply {
  if (typeof error === 'string') return readError({ message: error });
  if (!isRecord(error)) return { word: 'no code', status: undefined };
  const said = [error['code'], error['type']];
  const words = said.filter((word): word is string => typeof word === 'string' && ERROR_WORD.test(word));
  const ownWord = words.find((text) => !/^\d+$/.test(text)) ?? words[0] ?? 'no code';
  const word = isFlagged(error['metadata']) ? FILTERED : (wordOfSentence(error['message']) ?? ownWord);
  const known = [word, ...words].flatMap((text) => STATUS_OF_WORD.get(text) ?? []);
  const status = [...known, ...said.map(Number)].find(isStatus);
  return { word, status };
}

const PAGE = /^\s*(?:<|error code: \d)/i;

export function parseError(json: string): ErrorReply {
  try {
    // Gemini's come in a list.
    const [body] = [JSON.parse(json) as unknown].flat();
    return readError(isRecord(body) ? (body['error'] ?? body) : undefined);
  } catch {
    return PAGE.test(json) ? { ...readError(undefined), isPage: true } : readError(undefined);
  }
}

export function faultOfAnswer(status: number, { word, isPage }: ErrorReply): ProviderFault {
  if (UNPAID_WORDS.has(word)) return 'refused';
  if (FLAWED_WORDS.has(word)) return 'flawed';
  const said = faultOfStatus(status);
  // Some say 400 about an account, and Groq says 413 about a limit per minute; their word knows better.
  const fault = said === 'caller' ? faultOfStatus(STATUS_OF_WORD.get(word) ?? status) : said;
  // A 403 about the prompt is not about our account.
  if (FILTER_WORDS.has(word) && (fault === 'caller' || status === 403)) return 'filtered';
  // Firewalls refuse prompts that look like an attack: `DROP TABLE` is enough for some.
  if (status === 403 && isPage === true) return 'blocked';
  return fault === 'caller' && word === TOO_LONG ? 'too_long' : fault;
}

const saysSomething = (value: unknown) => (typeof value === 'string' ? value.trim() !== '' : Number(value) > 0);

/**
 * The error of an answer or an event: its own field, or the whole where it has no envelope (vLLM). Undefined where the
 * field says nothing: some Go servers print the empty struct beside every answer.
 */
export function errorOf(value: Record<string, unknown>, isAnswer: boolean): unknown {
  const { error } = value;
  if (typeof error === 'string' ? saysSomething(error) : isRecord(error) && Object.values(error).some(saysSomething))
    return error;
  const isBare = value['object'] === 'error' || (!isAnswer && typeof value['message'] === 'string');
  return isBare ? value : undefined;
}

export function errorInAnswer(error: unknown): ProviderError {
  const reply = readError(error);
  const fault = reply.status === undefined ? 'transient' : faultOfAnswer(reply.status, reply);
  return new ProviderError(fault, `The provider reported an error: ${reply.word}`, { isRefusal: true });
}

/** OpenAI's `Retry-After-Ms`, else `Retry-After` in seconds or as a date; 0: neither can be read. Milliseconds. */
export function parseRetryAfter(header: HttpHead['header'], now: number): number {
  const after = header('retry-after') ?? '';
  const seconds = Number(after);
  const later = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(after) - now;
  const wait = Number(header('retry-after-ms') ?? later);
  return Number.isFinite(wait) && wait > 0 ? wait : 0;
}

/** Headers that say what a provider allows per minute: OpenAI's and those of its kind, then Anthropic's. */
const LIMITS = {
  requests: [
    { limit: 'x-ratelimit-limit-requests', remaining: 'x-ratelimit-remaining-requests' },
    { limit: 'anthropic-ratelimit-requests-limit', remaining: 'anthropic-ratelimit-requests-remaining' },
  ],
  tokens: [
    { limit: 'x-ratelimit-limit-tokens', remaining: 'x-ratelimit-remaining-tokens' },
    { limit: 'anthropic-ratelimit-tokens-limit', remaining: 'anthropic-ratelimit-tokens-remaining' },
  ],
} as const;

export function readLimit(
  { header }: HttpHead,
  what: 'requests' | 'tokens',
): { limit: number; remaining: number | undefined } | undefined {
  for (const { limit, remaining } of LIMITS[what]) {
    const allowed = Number(header(limit));
    if (!Number.isFinite(allowed) || allowed <= 0) continue;
    const left = Number(header(remaining));
    return { limit: allowed, remaining: Number.isFinite(left) && left >= 0 ? left : undefined };
  }
  return undefined;
}
