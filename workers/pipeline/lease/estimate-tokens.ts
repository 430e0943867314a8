import type { ChatMessage } from '../../../shared/contracts/chat-request.ts';
import { BYTES_PER_TOKEN } from '../../../shared/domain/pricing/pricing.ts';

/** What chat formats add to each message and to the whole. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_PROMPT = 3;

/** How much text has come so far. */
export interface Amount {
  bytes: number;
  /** The pieces in which it came: each is at least one token. */
  pieces: number;
}

export function estimatePrompt(messages: readonly ChatMessage[]): number {
  return messages.reduce(
    (sum, { content }) => sum + TOKENS_PER_MESSAGE + Math.ceil(Buffer.byteLength(content) / BYTES_PER_TOKEN),
    TOKENS_PER_PROMPT,
  );
}

export function estimateTokens({ bytes, pieces }: Amount): number {
  return Math.max(pieces, Math.ceil(bytes / BYTES_PER_TOKEN));
}

export function amountWith({ bytes, pieces }: Amount, text: string): Amount {
  return { bytes: bytes + Buffer.byteLength(text), pieces: pieces + 1 };
}

/** The beginning of `text`, in whole characters, that keeps everything within `tokens`. */
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
