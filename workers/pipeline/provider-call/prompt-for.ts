import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import { fitWindow, surelyFits } from '../prompt/fit-window.ts';
import type { PromptParts } from '../prompt/fit-window.ts';
import { loadTokenizer } from '../prompt/tokenizer.ts';

/** The submitted messages alone exceed a target's window; another target's may be larger. */
export class TooLongError extends Error {
  override readonly name = 'TooLongError';
  readonly overTokens: number;

  constructor(promptTokens: number, roomTokens: number) {
    const over = promptTokens - roomTokens;
    const room = Math.max(0, roomTokens);
    super(
      `The messages are ${over} tokens too long for the model: ${promptTokens} tokens where its window leaves ${room} beside max_tokens.`,
    );
    this.overTokens = over;
  }
}

/** The prompt for one target: history trimmed to its window. Throws TooLongError when nothing is left to trim. */
export async function promptFor(prompt: PromptParts, contextWindow: number, maxTokens: number): Promise<ChatMessage[]> {
  const instruction = prompt.instruction === undefined ? [] : [prompt.instruction];
  const all = [...instruction, ...prompt.history, ...prompt.submitted];
  if (surelyFits(prompt, contextWindow, maxTokens)) return all;
  const tokenizer = await loadTokenizer();
  const count = await tokenizer.count(all.map(({ content }) => content));
  const fitted = fitWindow(prompt, contextWindow, maxTokens, count);
  if (fitted.kind === 'fits') return fitted.messages;
  throw new TooLongError(fitted.promptTokens, fitted.roomTokens);
}
