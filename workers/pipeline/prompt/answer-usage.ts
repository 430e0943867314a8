import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import type { Usage } from '../../../shared/contracts/events.ts';
import type { ReportedUsage } from '../../providers/provider.ts';
import { BYTES_PER_TOKEN } from '../../../shared/domain/pricing/pricing.ts';
import type { Ask } from '../stage.ts';
import { countBytes, countPrompt } from './fit-window.ts';
import { loadTokenizer } from './tokenizer.ts';

/**
 * Allowance for what a provider may add to the messages and count with them: a chat template, its own system prompt,
 * search results.
 */
const ADDED_TOKENS_MAX = 4_096;
/**
 * An answer count of up to this many times `max_tokens`, plus MARKS_MAX for role and end markers, is taken as a count
 * by another tokenizer.
 */
const OTHER_MEASURE_MAX = 2;
const MARKS_MAX = 16;

/** Ten times the longest reasoning that providers offer. `max_tokens` does not bound it everywhere: xAI counts it beside. */
const REASONING_TOKENS_MAX = 1_000_000;

/**
 * A provider's count, as far as it is plausible: no token of a prompt is shorter than a byte, no text has no tokens,
 * and no answer is longer than was asked for, apart from what was reasoned unseen. An answer is charged at most
 * `maxTokens` all the same. Undefined: the count cannot be true (docs/decisions/0009-holds-and-ledger.md).
 */
export function believedUsage(
  { promptTokens, completionTokens, reasoningTokens = 0 }: ReportedUsage,
  asked: readonly ChatMessage[],
  text: string,
  maxTokens: number,
): Usage | undefined {
  const reasoned = text === '' ? completionTokens : reasoningTokens;
  if (promptTokens === 0 || (completionTokens === 0 && text !== '')) return undefined;
  if (promptTokens > countPrompt(asked, countBytes) + ADDED_TOKENS_MAX) return undefined;
  if (completionTokens - reasoned > maxTokens * OTHER_MEASURE_MAX + MARKS_MAX) return undefined;
  if (reasoned > REASONING_TOKENS_MAX) return undefined;
  if (completionTokens <= maxTokens) return { promptTokens, completionTokens };
  return { promptTokens, completionTokens: maxTokens, estimated: true };
}

/** Tokens that a fast model writes in a second. So many count while nothing of an answer was heard. */
const SILENT_TOKENS_PER_SECOND = 100;

/** What a call cost the operator: the provider's count if it is plausible, or else what was sent and heard. */
export function askedTokens({ messages, promptTokens, maxTokens, heard, said, durationMs }: Ask): number {
  const { units, pieces } = heard;
  const believed = said && believedUsage(said, messages, pieces > 0 ? 'text' : '', maxTokens);
  if (believed !== undefined) return believed.promptTokens + believed.completionTokens;
  const unheard = Math.min(maxTokens, Math.floor((durationMs / 1000) * SILENT_TOKENS_PER_SECOND));
  return promptTokens + (pieces > 0 ? Math.max(pieces, Math.ceil(units / BYTES_PER_TOKEN)) : unheard);
}

/**
 * Counts with our own tokenizer, and flags as estimated, what a provider did not report or was cut off before it could
 * report. An answer counts as at most `maxTokens`.
 */
export async function estimateUsage(asked: readonly ChatMessage[], text: string, maxTokens: number): Promise<Usage> {
  const tokenizer = await loadTokenizer();
  const count = await tokenizer.count([...asked.map(({ content }) => content), text]);
  const completionTokens = Math.min(maxTokens, count(text));
  return { promptTokens: countPrompt(asked, count), completionTokens, estimated: true };
}
