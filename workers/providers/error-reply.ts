import { isRecord } from '../../shared/contracts/parse.ts';
import type { HttpHead } from '../../shared/http/http-call.ts';
import { ProviderError, faultOfStatus } from './provider.ts';
import type { ProviderFault } from './provider.ts';

/** The part of a provider's error that may be logged and acted on. */
export interface ErrorReply {
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

/** No money left, also said with 429 (OpenAI) or 400 (Anthropic): no retry helps, but another provider may. */
const UNPAID_WORDS: ReadonlySet<string> = new Set(['insufficient_quota', 'billing_error']);
const UNPAID_SENTENCE = /^Your credit balance is too low\b/;
const UNPAID = 'billing_error';

/** The prompt exceeds the model's window: OpenAI's word, and wording from Anthropic, vLLM, llama.cpp and Gemini. */
const TOO_LONG = 'context_length_exceeded';
const TOO_LONG_SENTENCE =
  /\b(?:maximum context length|prompt is too long|exceeds? the (?:available )?context (?:size|window|length)|input token count .{0,40}exceeds the maximum)\b/i;
/** The provider's own moderation refuses the prompt: Azure's word and OpenAI's. */
const FILTERED = 'content_filter';
const FILTER_WORDS: ReadonlySet<string> = new Set([FILTERED, 'content_policy_violation']);
/** The same in the sentences of Anthropic, DeepSeek, xAI and OpenRouter; the last two say it with 403. */
const FILTER_SENTENCE =
  /^(?:Output blocked by content filtering policy|Content Exists Risk|Content violates usage guidelines|\S+ requires moderation on OpenRouter)\b/i;

function isStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value <= 599;
}

/** Our word for errors that can only be recognized by their sentence. */
function wordOfSentence(message: unknown): string | undefined {
  if (typeof message !== 'string') return undefined;
  if (UNPAID_SENTENCE.test(message)) return UNPAID;
  if (FILTER_SENTENCE.test(message)) return FILTERED;
  return TOO_LONG_SENTENCE.test(message) ? TOO_LONG : undefined;
}

/** Whether OpenRouter's metadata says that the prompt was flagged. */
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

/** Reads the body of an error status. */
export function parseError(json: string): ErrorReply {
  try {
    const body: unknown = JSON.parse(json);
    return readError(isRecord(body) ? (body['error'] ?? body) : undefined);
  } catch {
    return PAGE.test(json) ? { ...readError(undefined), isPage: true } : readError(undefined);
  }
}

export function faultOfAnswer(status: number, { word, isPage }: ErrorReply): ProviderFault {
  if (UNPAID_WORDS.has(word)) return 'refused';
  const fault = faultOfStatus(status);
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

/** An error that came instead of an answer, or inside one. */
export function errorInAnswer(error: unknown): ProviderError {
  const reply = readError(error);
  const fault = reply.status === undefined ? 'transient' : faultOfAnswer(reply.status, reply);
  return new ProviderError(fault, `The provider reported an error: ${reply.word}`);
}

/** `Retry-After` in seconds or as a date; 0 if it is absent or unreadable. Milliseconds. */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - now;
  return Number.isFinite(wait) && wait > 0 ? wait : 0;
}

/** The headers in which a provider says what it allows per minute: OpenAI's and those of its kind, then Anthropic's. */
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

/** Reads from the head of any answer the provider's limit on requests, or on tokens; undefined: none. */
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
