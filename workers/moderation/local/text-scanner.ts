import {
  ALPHABET_SIZE,
  COLON_GAP,
  IGNORED,
  INVISIBLE,
  NEWLINE_GAP,
  NO_GAP,
  OTHER_LETTER,
  SOFT_GAP,
  SOFT_GAP_ONLY,
  SPACE_GAP,
  SPACE_ONLY,
  STOP_GAP,
  type CharacterClass,
} from './characters.ts';
import type { Lexicon } from './lexicon.ts';
import { PhraseTracker, type PhraseMatch } from './phrase-tracker.ts';
import { SpellingVariants, type WordStart } from './spelling-variants.ts';

const SPACE = 0x20;

/** Called for every match once it is certain; `at` is the position reached. True ends the scan. */
export type MatchListener = (match: PhraseMatch, at: number) => boolean;

/**
 * Reads a text once, character by character, and finds the phrases of a lexicon in it.
 *
 * The state is bounded, so time is linear in the text whatever it contains. A text may arrive in any pieces (cut
 * between code points): the matches are the same as for the whole. Positions count UTF-16 units from the beginning.
 */
export class TextScanner {
  private readonly lexicon: Lexicon;
  private readonly variants: SpellingVariants;
  private readonly tracker: PhraseTracker;
  private position = 0;
  private stopped = false;
  /** A word may begin here: the last character was a gap, or this is the beginning of the text. */
  private inGap = true;
  /** The next word is the first of a sentence. */
  private opensSentence = true;
  /** Line breaks since the last letter; two end a sentence. */
  private newlines = 0;
  /** The last stop or colon since the last letter; NO_GAP: there is none. */
  private lastMark = NO_GAP;

  constructor(lexicon: Lexicon, listener: MatchListener) {
    this.lexicon = lexicon;
    this.variants = new SpellingVariants(lexicon.trie);
    this.tracker = new PhraseTracker(lexicon.phrases, (match) => {
      if (!this.stopped) this.stopped = listener(match, this.position);
    });
  }

  /** A phrase is open; a partly read word does not count, as a single letter may continue after a sentence. */
  isInPhrase(): boolean {
    return !this.tracker.quiet;
  }

  /** How many UTF-16 units have been read. */
  get length(): number {
    return this.position;
  }

  /** Reads a text, or the part of it between two places, cut between code points. */
  write(text: string, from = 0, to = text.length): void {
    for (let at = from; at < to && !this.stopped;) {
      const passed = this.variants.idle ? this.passQuickly(text, at, to) : 0;
      at += passed;
      if (passed > 0) continue;
      const codePoint = text.codePointAt(at) ?? 0;
      const width = codePoint > 0xffff ? 2 : 1;
      this.step(this.lexicon.characters.classOf(codePoint));
      at += width;
      this.position += width;
    }
  }

  /** The text ends here, and with it the last word. */
  end(): void {
    if (this.stopped) return;
    this.completeWords();
    this.tracker.endSentence();
  }

  /** Nothing before this position can be part of a match that is still to come. */
  heldFrom(): number {
    return Math.min(this.position, this.variants.heldFrom(), this.tracker.heldFrom());
  }

  /** Passes characters while no word is being read, with the same result as `step`. Returns how many. */
  private passQuickly(text: string, at: number, to: number): number {
    if (!this.inGap) return this.passWord(text, at, at, to);
    return this.readPlainWord(text, at, to) || this.passGaps(text, at, to);
  }

  /**
   * Reads the beginning of a word as long as its letters are plain and each differs from the one before. Then there is
   * only one reading, which takes just a walk down the trie. Returns how many characters were read.
   */
  private readPlainWord(text: string, index: number, to: number): number {
    const { characters, trie } = this.lexicon;
    const { kinds } = characters;
    if (kindAt(kinds, text, index) >= ALPHABET_SIZE) return 0;
    const { start, opensSentence, context } = this.wordStart();
    const mayContinue = context.length > 0;
    let node = 0;
    let letter = -1;
    let at = index;
    for (; at < to; at += 1) {
      const next = kindAt(kinds, text, at);
      if (next >= ALPHABET_SIZE || next === letter) break;
      letter = next;
      node = trie.children[node * ALPHABET_SIZE + letter] ?? 0;
      if (node === 0 || (!mayContinue && trie.opens[node] === 0)) {
        // No phrase contains a word that begins like this.
        this.beginWord();
        return this.passWord(text, index, at, to);
      }
    }
    const letters = at - index;
    this.beginWord();
    this.position += letters;
    const isOver = at < to && text.charCodeAt(at) === SPACE && (letters > 1 || isPlainWordBehind(kinds, text, at));
    if (!isOver) {
      this.variants.place({ start, opensSentence, context }, node, letter, letters);
      return letters;
    }
    const found = trie.wordAt[node] ?? -1;
    if (found >= 0) this.tracker.read(found, { start, opensSentence, context, disguised: false });
    return letters + this.endWordAtSpace();
  }

  /** Passes the rest of a word that is in no phrase, and the space that ends it. Returns what was passed since `index`. */
  private passWord(text: string, index: number, from: number, to: number): number {
    const { kinds } = this.lexicon.characters;
    let at = from;
    while (at < to && kindAt(kinds, text, at) <= OTHER_LETTER) at += 1;
    this.position += at - index;
    return at - index + (at < to && text.charCodeAt(at) === SPACE ? this.endWordAtSpace() : 0);
  }

  /** Returns the length of the space. */
  private endWordAtSpace(): 1 {
    this.tracker.endWord();
    this.inGap = true;
    this.position += 1;
    return 1;
  }

  /** Passes further gaps that change nothing: dashes and dots in a table, wide spaces. Returns how many. */
  private passGaps(text: string, index: number, to: number): number {
    const { kinds } = this.lexicon.characters;
    const isPlainSpace = this.lastMark === NO_GAP && this.newlines <= 1;
    let at = index;
    for (; at < to; at += 1) {
      const kind = kindAt(kinds, text, at);
      if (kind !== SOFT_GAP_ONLY && !(isPlainSpace && kind === SPACE_ONLY)) break;
    }
    this.position += at - index;
    return at - index;
  }

  private step(character: CharacterClass): void {
    switch (character.gap) {
      case NO_GAP:
        this.stepLetter(character);
        return;
      case INVISIBLE:
        this.variants.markDisguised();
        return;
      case IGNORED:
        return;
      default:
        this.stepGap(character);
    }
  }

  private stepLetter(character: CharacterClass): void {
    if (!this.inGap) {
      this.variants.readLetter(character, undefined);
      return;
    }
    this.variants.readLetter(character, this.wordStart());
    this.beginWord();
  }

  /** The first letter of a word has been read. */
  private beginWord(): void {
    this.tracker.beginWord();
    this.inGap = false;
    this.opensSentence = false;
    this.newlines = 0;
    this.lastMark = NO_GAP;
  }

  private stepGap(character: CharacterClass): void {
    const begin = this.inGap && character.readings.length > 0 ? this.wordStart() : undefined;
    this.completeWords();
    const isSpace = character.gap === SPACE_GAP || character.gap === NEWLINE_GAP;
    const width = isSpace ? SPACE_GAP : SOFT_GAP;
    if (character.readings.length > 0) this.variants.readSymbol(character, begin, width);
    else this.variants.readGap(width);
    this.inGap = true;
    this.trackSentence(character.gap, isSpace);
  }

  private trackSentence(gap: number, isSpace: boolean): void {
    if (!isSpace) {
      // Quotes and brackets may close after the mark: `... kill." You ...`
      if (gap !== SOFT_GAP) this.lastMark = gap;
      return;
    }
    if (gap === NEWLINE_GAP) this.newlines += 1;
    if (this.lastMark === COLON_GAP) this.opensSentence = true;
    if (this.lastMark === STOP_GAP || this.newlines > 1) {
      this.opensSentence = true;
      this.tracker.endSentence();
    }
  }

  private completeWords(): void {
    const any = this.variants.eachComplete((word, reading) => {
      this.tracker.read(word, reading);
    });
    if (any || !this.inGap) this.tracker.endWord();
  }

  private wordStart(): WordStart {
    return { start: this.position, opensSentence: this.opensSentence, context: this.tracker.waiting };
  }
}

function kindAt(kinds: Uint8Array, text: string, at: number): number {
  return kinds[text.charCodeAt(at)] ?? 0;
}

/**
 * Whether two adjacent letters or digits follow a gap, so that no word of single letters («k i l l») continues after
 * it. False at the end of the text, where this cannot be known.
 */
function isPlainWordBehind(kinds: Uint8Array, text: string, gap: number): boolean {
  if (gap + 2 >= text.length) return false;
  return kindAt(kinds, text, gap + 1) <= OTHER_LETTER && kindAt(kinds, text, gap + 2) <= OTHER_LETTER;
}
