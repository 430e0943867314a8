import { setImmediate } from 'node:timers/promises';

/** How many characters are counted before other work of the process gets its turn: a few milliseconds at worst. */
const CHARACTERS_PER_TURN = 4_096;
/** A word counted before takes a fraction of the time: some 8 ns per character, against 100 to 1,000. */
const KNOWN_PART = 1 / 16;

/**
 * The time to count an unbroken run grows with the square of its length: one message of 16,000 emoji took 6 s. Cut
 * every 64 characters, it takes milliseconds; ordinary text has no such runs. Everything else is counted 4,096
 * characters at a time.
 */
const PIECE = /[^]{0,4096}?(?:\S{64}|\s{64})|[^]{1,4096}/gu;

/** In UTF-16 units. Longer words are rarely seen twice. */
const WORD_KEPT_MAX = 32;
/** They take about 3 MB. Ordinary texts have some thousands of different words. */
const WORDS_KEPT = 32_768;
const WHITE_SPACE = /\s/;

/**
 * A word ends before a space that follows anything but white space. There the encoding always begins a new piece,
 * whatever stands on either side, so a text has as many tokens as its words together.
 */
function endOfWord(text: string, from: number): number {
  for (let at = text.indexOf(' ', from + 1); at >= 0; at = text.indexOf(' ', at + 1)) {
    const before = text.charCodeAt(at - 1);
    if (before < 0x80 ? before > 0x20 : !WHITE_SPACE.test(text.charAt(at - 1))) return at;
  }
  return text.length;
}

let loading: ReturnType<typeof load> | undefined;

async function load() {
  const { countTokens, setMergeCacheSize } = await import('gpt-tokenizer/encoding/o200k_base');
  // The library's cache would keep longer runs from many more texts than are kept here.
  setMergeCacheSize(0);
  // Markers such as <|endoftext|> are ordinary text in a conversation.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
  /** The counts of words that were seen before. */
  const known = new Map<string, number>();
  let effort = 0;

  async function rest(): Promise<void> {
    effort = 0;
    await setImmediate();
  }

  async function countLong(text: string): Promise<number> {
    let tokens = 0;
    for (const [piece] of text.matchAll(PIECE)) {
      tokens += countTokens(piece, options);
      effort += piece.length;
      if (effort >= CHARACTERS_PER_TURN) await rest();
    }
    return tokens;
  }

  function countWord(word: string): number {
    const kept = known.get(word);
    effort += word.length * (kept === undefined ? 1 : KNOWN_PART);
    if (kept !== undefined) return kept;
    const tokens = countTokens(word, options);
    if (known.size === WORDS_KEPT) known.clear();
    // A copy, because a part of a text keeps the whole text in memory.
    known.set(Buffer.from(word, 'utf16le').toString('utf16le'), tokens);
    return tokens;
  }

  /** The tokens of one text. */
  async function countText(text: string): Promise<number> {
    let tokens = 0;
    for (let from = 0; from < text.length;) {
      const to = endOfWord(text, from);
      const word = text.slice(from, to);
      tokens += word.length > WORD_KEPT_MAX ? await countLong(word) : countWord(word);
      if (effort >= CHARACTERS_PER_TURN) await rest();
      from = to;
    }
    return tokens;
  }

  return {
    countText,
    /** Counts `texts`, letting other work of the process run in between. The returned function knows only these texts. */
    async count(texts: readonly string[]): Promise<(text: string) => number> {
      const counts = new Map<string, number>();
      for (const text of texts) if (!counts.has(text)) counts.set(text, await countText(text));
      return (text) => {
        const tokens = counts.get(text);
        if (tokens === undefined) throw new Error('A text was not handed to the tokenizer');
        return tokens;
      };
    },
  };
}

/** Reads tokens of OpenAI's models for embeddings as text. Loaded on first use, like the other vocabulary. */
export async function loadTokenDecoder(): Promise<(tokens: number[]) => string> {
  const { decode } = await import('gpt-tokenizer/encoding/cl100k_base');
  return decode;
}

/**
 * Counts tokens as OpenAI's current models do; for others it is a close estimate. Loaded on first use: the vocabulary
 * takes tens of megabytes, and most requests never need it.
 */
export function loadTokenizer(): ReturnType<typeof load> {
  return (loading ??= load());
}
