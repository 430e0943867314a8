import type { Usage } from '../../../shared/contracts/events.ts';
import { ProviderError } from '../provider.ts';

/** The parts of a chat completion, or of one chunk of it, that this service reads. */
export interface Completion {
  text: string;
  finishReason: 'stop' | 'length' | 'content_filter' | undefined;
  usage: Usage | undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** More than any context window holds: a count beyond it is a fault that nobody should be charged for. */
const TOKENS_MAX = 1_000_000_000;

function tokenCount(value: unknown): number | undefined {
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX;
  return isCount ? value : undefined;
}

/** An explicit zero is a number; a missing or senseless count is none (design.md section 7). */
function toUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const promptTokens = tokenCount(value['prompt_tokens']);
  const completionTokens = tokenCount(value['completion_tokens']);
  return promptTokens === undefined || completionTokens === undefined ? undefined : { promptTokens, completionTokens };
}

/** OpenAI-compatible servers have reasons of their own; what is no limit and no filter is an ordinary end. */
function toFinishReason(value: unknown): Completion['finishReason'] {
  if (typeof value !== 'string' || value === '') return undefined;
  return value === 'length' || value === 'content_filter' ? value : 'stop';
}

/** A word of the provider's own error list; free text may quote the conversation, which no log may show. */
const ERROR_WORD = /^[\w.-]{1,64}$/;

function errorWord(error: unknown): string {
  const words = isRecord(error) ? [error['code'], error['type']] : [];
  return words.find((word): word is string => typeof word === 'string' && ERROR_WORD.test(word)) ?? 'no code';
}

/** What the body of an error status says, in the provider's own code, for the operator's log. */
export function parseErrorWord(json: string): string {
  try {
    const body: unknown = JSON.parse(json);
    return errorWord(isRecord(body) ? (body['error'] ?? body) : undefined);
  } catch {
    return errorWord(undefined);
  }
}

/** Reads one chunk (`delta`) or a whole answer (`message`). Throws a transient ProviderError on anything else. */
export function parseCompletion(json: string, part: 'delta' | 'message'): Completion {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // The parser's own message quotes the text, so it is not kept as a cause.
    throw new ProviderError('transient', 'The provider sent text that is not JSON');
  }
  if (!isRecord(value)) throw new ProviderError('transient', 'The provider sent JSON that is no object');
  if (isRecord(value['error']))
    throw new ProviderError('transient', `The provider reported an error: ${errorWord(value['error'])}`);
  const choices = value['choices'];
  if (!Array.isArray(choices)) throw new ProviderError('transient', 'The provider sent an answer without choices');
  const choice: unknown = choices[0];
  const usage = toUsage(value['usage']);
  if (!isRecord(choice)) {
    if (part === 'message') throw new ProviderError('transient', 'The provider sent an answer without a choice');
    return { text: '', finishReason: undefined, usage };
  }
  const content = isRecord(choice[part]) ? choice[part]['content'] : undefined;
  return {
    text: typeof content === 'string' ? content : '',
    finishReason: toFinishReason(choice['finish_reason']),
    usage,
  };
}

/** `Retry-After` in seconds or as a date; 0 where it says nothing. Milliseconds. */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - now;
  return Number.isFinite(wait) && wait > 0 ? wait : 0;
}
