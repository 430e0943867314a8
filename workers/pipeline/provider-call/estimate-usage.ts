import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import type { Usage } from '../../../shared/contracts/events.ts';
import { countPrompt } from '../prompt/fit-window.ts';
import { loadTokenizer } from '../prompt/tokenizer.ts';

/** Counts with our own tokenizer what a provider did not report, or was cut off before it could; flagged as such. */
export async function estimateUsage(asked: readonly ChatMessage[], text: string): Promise<Usage> {
  const tokenizer = await loadTokenizer();
  const count = await tokenizer.count([...asked.map(({ content }) => content), text]);
  return { promptTokens: countPrompt(asked, count), completionTokens: count(text), estimated: true };
}
