import type { ChatRequest } from './chat-request.ts';

/**
 * The provider's token rule. It is simple so that a test can work out by hand what a call must cost.
 *
 * - Completion: one token is an optional white-space character and up to 8 other code points; white space that no
 *   such run follows is one token per character. A generated word is always exactly one token, and a delta is a
 *   whole number of tokens, so a stream that was cut has a well-defined count.
 * - Prompt: 3, and for each message 4 and its UTF-8 bytes / 4, rounded up; a call in a message counts as its name and
 *   arguments, a medium as 85 tokens, and the tools on offer as their JSON.
 */
const TOKEN = /\s?\S{1,8}|\s/gu;
const TOKENS_PER_PROMPT = 3;
const TOKENS_PER_MESSAGE = 4;
const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MEDIUM = 85;

/** Joined, the tokens are the text again. */
export function splitTokens(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

export const tokensOfText = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

export function countPromptTokens({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): number {
  let tokens = TOKENS_PER_PROMPT;
  for (const { text, calls, media = [] } of messages) {
    const called = calls?.map((call) => call.name + call.input).join('') ?? '';
    tokens += TOKENS_PER_MESSAGE + tokensOfText(text + called) + media.length * TOKENS_PER_MEDIUM;
  }
  return tools.length === 0 ? tokens : tokens + tokensOfText(JSON.stringify(tools));
}
