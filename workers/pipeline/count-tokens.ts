import { randomInt } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

import { unitsOf } from '../text-units.ts';

/** In UTF-16 units. Longer words are rarely seen twice. */
const WORD_KEPT_MAX = 32;

/** How many places a word's hash allows; words that share them push each other out. */
const WAYS = 4;
const SETS = 8_192;
const PRIME = 0x0100_0193;

const SPACE = 0x20;
const WHITE_SPACE = /\s/;

function isWhiteSpace(unit: number): boolean {
  return unit < 0x80 ? unit <= SPACE : WHITE_SPACE.test(String.fromCharCode(unit));
}

/** An unknown word, as its place in the text. */
interface WordPlace {
  readonly from: number;
  readonly to: number;
  readonly hash: number;
}

/** Reads the words of one text in turn. */
interface WordRun {
  /** How far the text has been read. */
  readonly at: number;
  /**
   * Reads on to the first unknown word, then in `unknown`, or beyond `until`. Returns the tokens of the known words.
   */
  readKnown(until: number): number;
  unknown: WordPlace | undefined;
}

/**
 * Token counts of words that were seen before: at most 32,768, in 2 MB. Words are looked up where they stand in their
 * text; a `Map` would need each as a string of its own. Even a text made up to be slow has a bounded cost, because a
 * word is looked for in only a few places.
 *
 * A word ends before a space that follows anything but white space. There the encoding always begins a new piece,
 * whatever stands on either side, so a text has as many tokens as its words together.
 */
class WordCounts {
  private readonly units = new Uint16Array(SETS * WAYS * WORD_KEPT_MAX);
  private readonly lengths = new Uint8Array(SETS * WAYS);
  private readonly tokens = new Uint8Array(SETS * WAYS);
  private readonly hashes = new Int32Array(SETS * WAYS);
  /** For each set of places, which one is written next. */
  private readonly next = new Uint8Array(SETS);
  private readonly seed: number;

  /** `seed`: must be unknown to anyone who could choose words that share a place. */
  constructor(seed: number) {
    this.seed = seed | 0;
  }

  open(text: string): WordRun & { keep(word: WordPlace, tokens: number): void } {
    const units = unitsOf(text);
    const run = {
      at: 0,
      unknown: undefined as WordPlace | undefined,
      readKnown: (until: number) => this.readKnown(units, run, Math.min(until, units.length)),
      keep: (word: WordPlace, tokens: number) => {
        this.keep(units.subarray(word.from, word.to), word.hash, tokens);
      },
    };
    return run;
  }

  private readKnown(text: Uint16Array, run: { at: number; unknown: WordPlace | undefined }, until: number): number {
    const { seed } = this;
    let sum = 0;
    let from = run.at;
    let hash = seed;
    let before = SPACE;
    run.unknown = undefined;
    for (let at = from; ; at += 1) {
      const unit = at < text.length ? (text[at] ?? 0) : SPACE;
      if (at === text.length || (unit === SPACE && at > from && !isWhiteSpace(before))) {
        const tokens = at - from > WORD_KEPT_MAX ? 0 : this.find(text, from, at, hash);
        if (tokens === 0 && at > from) {
          run.unknown = { from, to: at, hash };
          from = at;
          break;
        }
        sum += tokens;
        from = at;
        if (at >= until) break;
        hash = seed;
      }
      hash = Math.imul(hash ^ unit, PRIME);
      before = unit;
    }
    run.at = from;
    return sum;
  }

  /** 0: the word is not known. */
  private find(text: Uint16Array, from: number, to: number, hash: number): number {
    const { hashes, lengths, units } = this;
    const first = ((hash ^ (hash >>> 15)) & (SETS - 1)) * WAYS;
    for (let place = first; place < first + WAYS; place += 1) {
      if (hashes[place] !== hash || lengths[place] !== to - from) continue;
      let at = from;
      for (let other = place * WORD_KEPT_MAX; at < to && units[other] === text[at]; other += 1) at += 1;
      if (at === to) return this.tokens[place] ?? 0;
    }
    return 0;
  }

  private keep(word: Uint16Array, hash: number, tokens: number): void {
    const set = (hash ^ (hash >>> 15)) & (SETS - 1);
    const way = this.next[set] ?? 0;
    this.next[set] = (way + 1) % WAYS;
    const place = set * WAYS + way;
    this.units.set(word, place * WORD_KEPT_MAX);
    this.lengths[place] = word.length;
    this.tokens[place] = tokens;
    this.hashes[place] = hash;
  }
}

/** Counts tokens as OpenAI's current models do; for others it is a close estimate. */
export interface Tokenizer {
  /** The tokens of one text. */
  countText(text: string): Promise<number>;
  /** Counts `texts`, letting other work of the process run in between. The returned function knows only these texts. */
  count(texts: readonly string[]): Promise<(text: string) => number>;
}

/** How many characters are counted before other work of the process gets its turn: a few milliseconds at worst. */
const CHARACTERS_PER_TURN = 4_096;
/** A word counted before takes a fraction of the time: 3 ns per character, measured, against 100 to 1,000. */
const KNOWN_PART = 1 / 16;

/**
 * The time to count an unbroken run grows with the square of its length: one message of 16,000 emoji took 6 s. Cut
 * every 64 characters, it takes milliseconds; ordinary text has no such runs. Everything else is counted 4,096
 * characters at a time.
 */
const PIECE = /[^]{0,4096}?(?:\S{64}|\s{64})|[^]{1,4096}/gu;

let loading: Promise<Tokenizer> | undefined;

async function load(): Promise<Tokenizer> {
  const { countTokens, setMergeCacheSize } = await import('gpt-tokenizer/encoding/o200k_base');
  // The library's cache would keep longer runs from many more texts than WordCounts does.
  setMergeCacheSize(0);
  // Markers such as <|endoftext|> are ordinary text in a conversation.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
  // A random seed, so that nobody outside can choose words that share a place.
  const known = new WordCounts(randomInt(2 ** 32));
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

  async function countText(text: string): Promise<number> {
    const words = known.open(text);
    let tokens = 0;
    while (words.at < text.length) {
      const from = words.at;
      tokens += words.readKnown(from + CHARACTERS_PER_TURN / KNOWN_PART);
      effort += (words.at - from) * KNOWN_PART;
      const { unknown } = words;
      if (unknown !== undefined) {
        const word = text.slice(unknown.from, unknown.to);
        if (word.length > WORD_KEPT_MAX) tokens += await countLong(word);
        else {
          const count = countTokens(word, options);
          words.keep(unknown, count);
          tokens += count;
          effort += word.length;
        }
      }
      if (effort >= CHARACTERS_PER_TURN) await rest();
    }
    return tokens;
  }

  return {
    countText,
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

/** Loaded on first use: the vocabulary takes tens of megabytes, and most requests never need it. */
export function loadTokenizer(): Promise<Tokenizer> {
  return (loading ??= load());
}
