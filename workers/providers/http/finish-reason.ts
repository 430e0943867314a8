import { ProviderError } from '../provider.ts';
import type { ProviderEnd } from '../provider.ts';

export type FinishReason = ProviderEnd['finishReason'];

/** The words of both protocols, and those that compatible servers have let through or made up, in lower case. */
const WORDS: Readonly<Record<FinishReason | 'broken' | 'tool' | 'none', string>> = {
  stop: 'stop eos eos_token end_turn stop_sequence',
  // Cut off by `max_tokens` or the window: OpenAI's word, Mistral's, Anthropic's, Gemini's, and some gateways'.
  length: 'length model_length max_tokens max_output_tokens model_context_window_exceeded token_limit',
  // OpenAI's, Anthropic's, Z.ai's and Bedrock's, then Gemini's.
  content_filter:
    'content_filter content-filter content_filtered refusal sensitive guardrail_intervened ' +
    'safety recitation prohibited_content blocklist spii',
  // OpenRouter and vLLM, DeepSeek, Z.ai, Bedrock, Gemini, and some gateways.
  broken:
    'error abort insufficient_system_resource network_error malformed_response malformed_function_call ' +
    'timeout cancelled server_error',
  tool: 'tool_calls function_call tool_use',
  // In every chunk but the last.
  none: 'null none finish_reason_unspecified',
};

const MEANINGS: ReadonlyMap<string, keyof typeof WORDS> = new Map([
  ['', 'none'],
  ...Object.entries(WORDS).flatMap(([meaning, words]) =>
    words.split(' ').map((word) => [word, meaning as keyof typeof WORDS] as const),
  ),
]);

/** A word of the provider as a log may show it; anything else may be part of the conversation. */
export function plainWord(word: string): string {
  return /^[\w-]{1,64}$/.test(word) ? word : 'unreadable';
}

/**
 * Why an answer ended, in one of our words. Undefined: it has not. Throws a ProviderError for an answer that was broken
 * off: half an answer is no success (docs/spec.md#routing).
 */
export function readFinishReason(word: unknown): FinishReason | 'tool' | 'unknown' | undefined {
  if (typeof word !== 'string') return undefined;
  const meaning = MEANINGS.get(word) ?? MEANINGS.get(word.trim().toLowerCase()) ?? 'unknown';
  if (meaning === 'broken')
    throw new ProviderError('transient', `The provider broke its answer off (finish reason ${plainWord(word)})`);
  return meaning === 'none' ? undefined : meaning;
}
