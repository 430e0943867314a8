import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import { loadTokenizer } from './tokenizer.ts';

/** What a chat format adds to each message: role and separators, a few tokens for every known model. */
const TOKENS_PER_MESSAGE = 4;

export type CountTokens = (text: string) => number;

export interface PromptParts {
  /** The context instruction; never trimmed. */
  instruction: ChatMessage | undefined;
  /** Oldest first; trimmed in whole turns from the oldest. */
  history: readonly ChatMessage[];
  /** Never trimmed (docs/spec/contract.md section 4). */
  submitted: readonly ChatMessage[];
}

export type FittedPrompt =
  | { kind: 'fits'; messages: ChatMessage[]; promptTokens: number }
  | { kind: 'too_long'; promptTokens: number; roomTokens: number };

/** The tokens of the messages, including what a chat format adds to each. */
export function countPrompt(messages: readonly ChatMessage[], count: CountTokens): number {
  return messages.reduce((sum, message) => sum + count(message.content) + TOKENS_PER_MESSAGE, 0);
}

/** A turn begins with a user message; what follows belongs to it. */
function turnsOf(history: readonly ChatMessage[]): ChatMessage[][] {
  const turns: ChatMessage[][] = [];
  for (const message of history) {
    const current = turns.at(-1);
    if (current === undefined || (message.role === 'user' && current.some(({ role }) => role === 'assistant')))
      turns.push([message]);
    else current.push(message);
  }
  return turns;
}

/** Keeps the newest turns that fit in the window beside instruction, submitted messages and `maxTokens`. */
export function fitWindow(
  parts: PromptParts,
  contextWindow: number,
  maxTokens: number,
  count: CountTokens,
): FittedPrompt {
  const room = contextWindow - maxTokens;
  const fixed = [...(parts.instruction === undefined ? [] : [parts.instruction]), ...parts.submitted];
  let promptTokens = countPrompt(fixed, count);
  if (promptTokens > room) return { kind: 'too_long', promptTokens, roomTokens: room };
  const kept: ChatMessage[] = [];
  for (const turn of turnsOf(parts.history).reverse()) {
    const cost = countPrompt(turn, count);
    if (promptTokens + cost > room) break;
    kept.unshift(...turn);
    promptTokens += cost;
  }
  const instruction = parts.instruction === undefined ? [] : [parts.instruction];
  return { kind: 'fits', messages: [...instruction, ...kept, ...parts.submitted], promptTokens };
}

/** No token is shorter than one byte, so bytes are an upper bound that needs no tokenizer. */
export const countBytes: CountTokens = (text) => Buffer.byteLength(text);

/** The prompt exceeds a target's window even without history; another target's window may be larger. */
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

type CountText = (text: string) => Promise<number>;

async function countText(text: string): Promise<number> {
  return (await loadTokenizer()).countText(text);
}

/**
 * The prompt for one target: history trimmed to its window. Throws TooLongError when nothing is left to trim. Counts
 * one message after another, and stops as soon as everything fits with the remaining messages taken at one token per
 * byte.
 */
export async function promptFor(
  prompt: PromptParts,
  contextWindow: number,
  maxTokens: number,
  tokensOf: CountText = countText,
): Promise<ChatMessage[]> {
  const instruction = prompt.instruction === undefined ? [] : [prompt.instruction];
  const all = [...instruction, ...prompt.history, ...prompt.submitted];
  const room = contextWindow - maxTokens;
  const counts: number[] = [];
  let atMost = countPrompt(all, countBytes);
  for (const { content } of all) {
    if (atMost <= room) return all;
    const tokens = await tokensOf(content);
    counts.push(tokens);
    atMost -= countBytes(content) - tokens;
  }
  const known = new Map(all.map(({ content }, index) => [content, counts[index] ?? 0]));
  const fitted = fitWindow(prompt, contextWindow, maxTokens, (text) => known.get(text) ?? countBytes(text));
  if (fitted.kind === 'fits') return fitted.messages;
  throw new TooLongError(fitted.promptTokens, fitted.roomTokens);
}
