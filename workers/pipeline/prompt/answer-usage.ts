import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import type { Usage } from '../../../shared/contracts/events.ts';
import { countBytes, countPrompt } from './fit-window.ts';
import { loadTokenizer } from './tokenizer.ts';

/**
 * What a provider may put beside the messages and count with them: a chat template, a system prompt of its own, what a
 * search has found.
 */
const ADDED_TOKENS_MAX = 4_096;
/** A count of the answer up to so many times `max_tokens`, and some for roles and ends, is one by another measure. */
const OTHER_MEASURE_MAX = 2;
const MARKS_MAX = 16;

/**
 * A provider's count as far as it can be true: no token of a prompt is shorter than a byte, and an answer is no longer
 * than was asked for. Undefined: it cannot be true (docs/decisions/0095-what-a-provider-may-count.md).
 */
export function believedUsage(said: Usage, asked: readonly ChatMessage[], maxTokens: number): Usage | undefined {
  const { promptTokens, completionTokens } = said;
  if (promptTokens > countPrompt(asked, countBytes) + ADDED_TOKENS_MAX) return undefined;
  if (completionTokens > maxTokens * OTHER_MEASURE_MAX + MARKS_MAX) return undefined;
  return completionTokens <= maxTokens ? said : { promptTokens, completionTokens: maxTokens, estimated: true };
}

/**
 * Counts with our own tokenizer what a provider did not report, or was cut off before it could; flagged as such. An answer
 * counts at most `maxTokens`.
 */
export async function estimateUsage(asked: readonly ChatMessage[], text: string, maxTokens: number): Promise<Usage> {
  const tokenizer = await loadTokenizer();
  const count = await tokenizer.count([...asked.map(({ content }) => content), text]);
  const completionTokens = Math.min(maxTokens, count(text));
  return { promptTokens: countPrompt(asked, count), completionTokens, estimated: true };
}
