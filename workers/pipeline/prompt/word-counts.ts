import { unitsOf } from '../../text-units.ts';

/** In UTF-16 units. Longer words are rarely seen twice. */
export const WORD_KEPT_MAX = 32;

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
export interface WordRun {
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
export class WordCounts {
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
