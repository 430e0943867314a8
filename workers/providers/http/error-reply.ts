import { ProviderError, faultOfStatus } from '../provider.ts';
import type { ProviderFault } from '../provider.ts';
import { isRecord } from './parse-json.ts';

/** What a provider's error says that may be logged and acted on. */
export interface ErrorReply {
  /** The provider's own word for the error, or `no code`. */
  word: string;
  /** The HTTP status that the error stands for, where it says so itself: inside a stream there is no other. */
  status: number | undefined;
}

/** A word or number of the provider's own error list; anything else may quote the conversation, or our key. */
const ERROR_WORD = /^(?:[A-Za-z_.]{1,64}|\d{1,6})$/;

/** Words that mean the same as a status, for errors inside a stream (Anthropic's list, and OpenAI's). */
const STATUS_OF_WORD: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
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

/** An account without money is told by 429 (OpenAI) or 400 (Anthropic) as well; no further try helps, another provider may. */
const UNPAID_WORDS: ReadonlySet<string> = new Set(['insufficient_quota', 'billing_error']);
const UNPAID_SENTENCE = /^Your credit balance is too low\b/;
const UNPAID = 'billing_error';

function isStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value <= 599;
}

/** Reads the error object of an answer or of an event, in OpenAI's shape, Anthropic's or a plain one. */
export function readError(error: unknown): ErrorReply {
  if (!isRecord(error)) return { word: 'no code', status: undefined };
  const said = [error['code'], error['type']];
  const words = said.filter((word): word is string => typeof word === 'string' && ERROR_WORD.test(word));
  const isUnpaid = typeof error['message'] === 'string' && UNPAID_SENTENCE.test(error['message']);
  const word = isUnpaid ? UNPAID : (words.find((text) => !/^\d+$/.test(text)) ?? words[0] ?? 'no code');
  const known = [word, ...words].flatMap((text) => STATUS_OF_WORD.get(text) ?? []);
  const status = [...known, ...said.map(Number)].find(isStatus);
  return { word, status };
}

/** What the body of an error status says. */
export function parseError(json: string): ErrorReply {
  try {
    const body: unknown = JSON.parse(json);
    return readError(isRecord(body) ? (body['error'] ?? body) : undefined);
  } catch {
    return readError(undefined);
  }
}

export function faultOfAnswer(status: number, { word }: ErrorReply): ProviderFault {
  return UNPAID_WORDS.has(word) ? 'refused' : faultOfStatus(status);
}

/** An error that came in place of an answer, or inside one. */
export function errorInAnswer(error: unknown): ProviderError {
  const reply = readError(error);
  const fault = reply.status === undefined ? 'transient' : faultOfAnswer(reply.status, reply);
  return new ProviderError(fault, `The provider reported an error: ${reply.word}`);
}

/** `Retry-After` in seconds or as a date; 0 where it says nothing. Milliseconds. */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - now;
  return Number.isFinite(wait) && wait > 0 ? wait : 0;
}
