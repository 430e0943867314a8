import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import { BYTES_PER_TOKEN } from '../../../shared/domain/pricing/pricing.ts';
import { countPrompt } from '../prompt/fit-window.ts';

/** What chat formats add to a whole prompt. */
const TOKENS_PER_PROMPT = 3;

/** How much text has come so far. */
export interface Amount {
  bytes: number;
  /** How many pieces it came in; each is at least one token. */
  pieces: number;
}

const tokensOf = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** Tokens of a prompt, estimated from its bytes until somebody has counted them. */
export function estimatePrompt(messages: readonly ChatMessage[]): number {
  return TOKENS_PER_PROMPT + countPrompt(messages, tokensOf);
}

/** Tokens of an answer so far. */
export function estimateTokens({ bytes, pieces }: Amount): number {
  return Math.max(pieces, Math.ceil(bytes / BYTES_PER_TOKEN));
}

/** The amount after one more piece. */
export function amountWith({ bytes, pieces }: Amount, text: string): Amount {
  return { bytes: bytes + Buffer.byteLength(text), pieces: pieces + 1 };
}

/** The longest beginning of `text`, in whole characters, with which the answer stays within `tokens`. */
export function fittingPart(before: Amount, text: string, tokens: number): string {
  if (before.pieces >= tokens) return '';
  let left = tokens * BYTES_PER_TOKEN - before.bytes;
  let end = 0;
  for (const character of text) {
    left -= Buffer.byteLength(character);
    if (left < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}
