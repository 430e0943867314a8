import { setImmediate } from 'node:timers/promises';

/** Counts tokens as OpenAI's current models do; for others it is a close estimate. */
export interface Tokenizer {
  /** Counts `texts`, letting other work of the process run in between. The result knows these texts only. */
  count(texts: readonly string[]): Promise<(text: string) => number>;
}

/** So many characters are counted before other work of the process gets its turn: some milliseconds at the worst. */
const CHARACTERS_PER_TURN = 4_096;
/** A word that was counted before takes a small part of the time. */
const KNOWN_PART = 1 / 4;

/** Longer ones are rarely seen twice. */
const WORD_KEPT_MAX = 32;
/** Some megabytes. Words of one text are mostly those of the next, whoever sends it. */
const WORDS_MAX = 20_000;

/**
 * The time to count a run without a break grows with the square of its length: one message of 16,000 emoji took 6 s.
 * Cut at 64 characters it is a matter of milliseconds, and ordinary text has no such runs.
 */
const PIECE = /[^]*?(?:\S{64}|\s{64})|[^]+/gu;

const SPACE = 0x20;
const WHITE_SPACE = /\s/;

/**
 * Where a word ends: in front of a space that follows anything but white space. There the encoding always begins a new
 * piece, whatever stands on both sides, so a text has as many tokens as its words.
 */
function endsWord(text: string, at: number): boolean {
  if (at === text.length) return true;
  if (text.charCodeAt(at) !== SPACE) return false;
  const before = text.charCodeAt(at - 1);
  return before > SPACE && (before < 0x80 || !WHITE_SPACE.test(String.fromCharCode(before)));
}

/** A part of a text keeps the whole of it in memory. */
function ownCopy(word: string): string {
  return Buffer.from(word, 'utf16le').toString('utf16le');
}

let loading: Promise<Tokenizer> | undefined;

async function load(): Promise<Tokenizer> {
  const { countTokens, setMergeCacheSize } = await import('gpt-tokenizer/encoding/o200k_base');
  // It would keep longer runs of many more texts.
  setMergeCacheSize(0);
  // Markers such as <|endoftext|> are ordinary text in a conversation.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
  const known = new Map<string, number>();
  let effort = 0;

  async function rest(): Promise<void> {
    effort = 0;
    await setImmediate();
  }

  function learn(word: string): number {
    const tokens = countTokens(word, options);
    if (known.size >= WORDS_MAX) known.clear();
    known.set(ownCopy(word), tokens);
    effort += word.length * (1 - KNOWN_PART);
    return tokens;
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

  async function countText(text: string): Promise<number> {
    let tokens = 0;
    let from = 0;
    for (let at = 1; at <= text.length; at += 1) {
      if (!endsWord(text, at)) continue;
      const word = text.slice(from, at);
      from = at;
      if (word.length > WORD_KEPT_MAX) {
        tokens += await countLong(word);
        continue;
      }
      tokens += known.get(word) ?? learn(word);
      effort += word.length * KNOWN_PART;
      if (effort >= CHARACTERS_PER_TURN) await rest();
    }
    return tokens;
  }

  return {
    async count(texts) {
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

/** Loaded on first use: the vocabulary takes tens of megabytes that most requests never need. */
export function loadTokenizer(): Promise<Tokenizer> {
  return (loading ??= load());
}
