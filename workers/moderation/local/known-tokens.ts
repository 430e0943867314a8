import { classifyToken, TOKEN_WORDS_MAX } from './classify-token.ts';
import type { TokenClass } from './classify-token.ts';
import type { Lexicon } from './lexicon.ts';

/** The longest token that is learned, in Latin-1 characters: four 32-bit numbers hold them and compare quickly. */
const TOKEN_MAX = 16;
/** The cost of learning a token or a step of OpenPhrases, paid in characters read. */
export const FOUND_OUT = 40;
const LATIN_1 = 0x100;
const SPACE = 0x20;
const TAB = 0x09;

/** A set-associative cache: a token's hash selects a set of four places, where a new token replaces the oldest. */
const WAYS = 4;
const SETS = 2_048;
const WIDTH = 5;

/** Flags of a token: the scanner has to read it; see `TokenClass.isSingle`; one of its words can begin a phrase. */
export const COMPLEX = 1;
export const SINGLE = 2;
export const OPENS = 4;
const COUNT_SHIFT = 3;
const MARK_SHIFT = 5;

export function wordsIn(noted: number): number {
  return (noted >> COUNT_SHIFT) & TOKEN_WORDS_MAX;
}

export function markOf(noted: number): number {
  return noted >> MARK_SHIFT;
}

/**
 * A cache of tokens and the words in them, 8,192 at most. A token means the same in every text, ordinary text has few
 * new tokens, and looking one up takes less time than reading it.
 */
export class KnownTokens {
  /** The budget left for learning, at FOUND_OUT per token (see `allowLearning`). */
  budget = 0;
  /** Where the token that `find` last looked for ends. */
  end = 0;
  /** The words of each place, TOKEN_WORDS_MAX of them. */
  readonly words = new Int16Array(SETS * WAYS * TOKEN_WORDS_MAX);
  readonly noted = new Uint8Array(SETS * WAYS);
  /** The characters of each place, and their number. */
  private readonly keys = new Int32Array(SETS * WAYS * WIDTH);
  /** For each set, the place that is written next. */
  private readonly next = new Uint8Array(SETS);
  private readonly lexicon: Lexicon;
  private readonly read: TokenClass = { words: new Int16Array(TOKEN_WORDS_MAX), count: 0, mark: 0, isSingle: false };

  constructor(lexicon: Lexicon) {
    this.lexicon = lexicon;
  }

  /**
   * The place of the token that begins at `from` and ends at a space, a tab or `to`; learns the token if it is new. -1:
   * the token ends in another way, is empty or too long, has characters beyond Latin-1, or cannot be learned now.
   */
  find(text: Uint16Array, from: number, to: number): number {
    const { keys } = this;
    const most = Math.min(to, from + TOKEN_MAX);
    let [all, one, two, three, four] = [0, 0, 0, 0, 0];
    let end = from;
    for (; end < most; end += 1) {
      const unit = text[end] ?? SPACE;
      // A line break also ends the loop; because it is neither space nor tab, -1 is returned below.
      if (unit <= SPACE) break;
      all |= unit;
      four = (four << 8) | (three >>> 24);
      three = (three << 8) | (two >>> 24);
      two = (two << 8) | (one >>> 24);
      one = (one << 8) | unit;
    }
    this.end = end;
    const length = end - from;
    if (length === 0 || all >= LATIN_1 || (end < to && text[end] !== SPACE && text[end] !== TAB)) return -1;
    let hash = Math.imul(one ^ Math.imul(two, 0x85eb_ca6b), 0x0100_0193) ^ Math.imul(three ^ (four << 7), 0xc2b2_ae35);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d) ^ length;
    const first = ((hash ^ (hash >>> 13)) & (SETS - 1)) * WAYS;
    for (let place = first; place < first + WAYS; place += 1) {
      const at = place * WIDTH;
      if (
        keys[at] === one &&
        keys[at + 1] === two &&
        keys[at + 4] === length &&
        keys[at + 2] === three &&
        keys[at + 3] === four
      )
        return place;
    }
    if (this.budget < FOUND_OUT) return -1;
    this.budget -= FOUND_OUT;
    const place = this.learn(text, from, end, first);
    if (place >= 0) keys.set([one, two, three, four, length], place * WIDTH);
    return place;
  }

  private learn(text: Uint16Array, from: number, to: number, first: number): number {
    const { read, lexicon } = this;
    const isPlain = classifyToken(lexicon, text, from, to, read);
    if (isPlain === undefined) return -1;
    const set = first / WAYS;
    const way = this.next[set] ?? 0;
    this.next[set] = (way + 1) % WAYS;
    const place = first + way;
    let opens = 0;
    for (let index = 0; index < read.count; index += 1) {
      const word = read.words[index] ?? -1;
      this.words[place * TOKEN_WORDS_MAX + index] = word;
      if (word >= 0 && lexicon.isOpening[word] === 1) opens = OPENS;
    }
    const single = read.isSingle ? SINGLE : 0;
    this.noted[place] = isPlain ? single | opens | (read.count << COUNT_SHIFT) | (read.mark << MARK_SHIFT) : COMPLEX;
    return place;
  }
}
