import { setImmediate } from 'node:timers/promises';

/** Counts tokens as OpenAI's current models do; for others it is a close estimate. */
export interface Tokenizer {
  /** Counts `texts`, letting other work of the process run in between. The result knows these texts only. */
  count(texts: readonly string[]): Promise<(text: string) => number>;
}

/** So many characters are counted before other work of the process gets its turn: some milliseconds at the worst. */
const CHARACTERS_PER_TURN = 4_096;

/**
 * The time to count a run without a break grows with the square of its length: one message of 16,000 emoji took 6 s.
 * Cut at 64 characters it is a matter of milliseconds, and ordinary text has no such runs.
 */
const PIECE = /[^]*?(?:\S{64}|\s{64})|[^]+/gu;

let loading: Promise<Tokenizer> | undefined;

async function load(): Promise<Tokenizer> {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
  // Markers such as <|endoftext|> are ordinary text in a conversation.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

  return {
    async count(texts) {
      const counts = new Map<string, number>();
      let sinceTurn = 0;
      for (const text of texts) {
        if (counts.has(text)) continue;
        let tokens = 0;
        for (const [piece] of text.matchAll(PIECE)) {
          tokens += countTokens(piece, options);
          sinceTurn += piece.length;
          if (sinceTurn < CHARACTERS_PER_TURN) continue;
          sinceTurn = 0;
          await setImmediate();
        }
        counts.set(text, tokens);
      }
      return (text) => {
        const tokens = counts.get(text);
        if (tokens === undefined) throw new Error('A text was not handed to the tokenizer');
        return tokens;
      };
    },
  };
}

/** Loaded on first use: the vocabulary takes tens of megabytes that most requests never need. */
export function loadTokenizer(): Promise<Tokenizer> {
  return (loading ??= load());
}
