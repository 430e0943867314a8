/** Counts tokens as OpenAI's current models do; for others it is a close estimate. */
export interface Tokenizer {
  count(text: string): number;
}

let loading: Promise<Tokenizer> | undefined;

/** Loaded on first use: the vocabulary takes tens of megabytes that most requests never need. */
export function loadTokenizer(): Promise<Tokenizer> {
  loading ??= import('gpt-tokenizer/encoding/o200k_base').then(({ countTokens }) => ({
    // Markers such as <|endoftext|> are ordinary text in a conversation.
    count: (text) => countTokens(text, { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }),
  }));
  return loading;
}
