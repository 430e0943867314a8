import {
  ALPHABET_SIZE,
  COLON_GAP,
  IGNORED,
  INVISIBLE,
  NEWLINE_GAP,
  NO_GAP,
  SOFT_GAP,
  SPACE_GAP,
  STOP_GAP,
  type CharacterClass,
} from './characters.ts';
import { codePointAt, unitsOf } from '../text-units.ts';
import { GAPS, learnUnit, type Lexicon } from './lexicon.ts';
import { isPlainWordBehind, kindAt } from './word-ends.ts';
import { PhraseTracker, type PhraseMatch } from './phrase-tracker.ts';
import { skipFast, type TextPlace } from './fast-skip.ts';
import { SpellingVariants, type WordStart } from './spelling-variants.ts';

const SPACE = 0x20;

/** Called for every match once it is certain; `at` is the position reached. True ends the scan. */
export type MatchListener = (match: PhraseMatch, at: number) => boolean;

/**
 * Reads a text once, and finds the phrases of a lexicon in it. Its state is bounded, so time is linear in the text
 * whatever it contains. A text may arrive in any pieces (cut between code points) with the same matches. Positions
 * count UTF-16 units from the beginning.
 */
export class TextScanner {
  private readonly lexicon: Lexicon;
  private readonly readers: SpellingVariants;
  private readonly tracker: PhraseTracker;
  private position = 0;
  private stopped = false;
  private readonly place: TextPlace = {
    inGap: true,
    opensSentence: true,
    newlines: 0,
    lastMark: NO_GAP,
    lookedTo: 0,
    triedTo: 0,
  };

  constructor(lexicon: Lexicon, listener: MatchListener) {
    this.lexicon = lexicon;
    this.readers = new SpellingVariants(lexicon.trie);
    this.tracker = new PhraseTracker(lexicon.phrases, (match) => {
      if (!this.stopped) this.stopped = listener(match, this.position);
    });
  }

  /** Text read so far does not affect what follows, except where a sentence begins. */
  get quiet(): boolean {
    return this.readers.idle && this.tracker.quiet;
  }

  /** A phrase is open; a partly read word does not count, as a single letter may continue after a sentence. */
  get inPhrase(): boolean {
    return !this.tracker.quiet;
  }

  get length(): number {
    return this.position;
  }

  write(text: string): void {
    this.read(unitsOf(text), 0, text.length);
  }

  /**
   * Reads the units from `from` to `to`, cut between code points. The text that follows is read next, or other white
   * space in place of white space.
   */
  read(units: Uint16Array, from: number, to: number): void {
    const { characters, openPhrases } = this.lexicon;
    this.place.lookedTo = from;
    this.place.triedTo = from;
    openPhrases.allowLearning(to - from);
    for (let index = from; index < to && !this.stopped;) {
      if (this.quiet) {
        const skimmed = skipFast(this.lexicon, this.place, units, index, to);
        this.position += skimmed;
        index += skimmed;
        if (index === to) return;
      }
      if (this.place.inGap && this.readers.idle) {
        const read = this.readPlainWord(units, index, to) || this.passGaps(units, index, to);
        index += read;
        if (read > 0) continue;
      }
      const codePoint = codePointAt(units, index);
      const width = codePoint > 0xffff ? 2 : 1;
      const character = characters.classOf(codePoint);
      learnUnit(this.lexicon, codePoint, character);
      // Most letters are in words that are in no phrase.
      if (character.gap !== NO_GAP || this.place.inGap || !this.readers.idle) this.step(character);
      index += width;
      this.position += width;
    }
  }

  end(): void {
    if (this.stopped) return;
    this.completeWords();
    this.tracker.endSentence();
  }

  /** Text before this position cannot be part of a match that is still to come. */
  heldFrom(): number {
    return Math.min(this.position, this.readers.heldFrom(), this.tracker.heldFrom());
  }

  /**
   * Reads the beginning of a word, with the same result as one by one, while its letters are plain, each differs from
   * the one before, and nothing else is being read: the one reading is a walk down the trie. Returns how many
   * characters were read.
   */
  private readPlainWord(units: Uint16Array, index: number, to: number): number {
    const { unitKinds, trie } = this.lexicon;
    if (kindAt(unitKinds, units, index) >= ALPHABET_SIZE) return 0;
    const { start, opensSentence, context } = this.wordStart();
    const mayContinue = context.length > 0;
    let node = 0;
    let letter = -1;
    let at = index;
    for (; at < to; at += 1) {
      const next = kindAt(unitKinds, units, at);
      if (next >= ALPHABET_SIZE || next === letter) break;
      letter = next;
      node = trie.children[node * ALPHABET_SIZE + letter] ?? 0;
      if (node === 0 || (!mayContinue && trie.opens[node] === 0)) {
        // No phrase contains a word that begins like this.
        this.beginWord();
        return this.passWord(units, index, at, to);
      }
    }
    const letters = at - index;
    this.beginWord();
    this.position += letters;
    const isOver = at < to && units[at] === SPACE && (letters > 1 || isPlainWordBehind(unitKinds, units, at));
    if (!isOver) {
      this.readers.place({ start, opensSentence, context }, node, letter, letters);
      return letters;
    }
    const found = trie.wordAt[node] ?? -1;
    if (found >= 0) this.tracker.read(found, { start, opensSentence, context, disguised: false });
    this.position += this.endWordAtSpace();
    return letters + 1;
  }

  /**
   * Passes letters, which mean nothing until the next gap, as no word is being read; a space ends the word. Returns how
   * many characters were passed since `index`.
   */
  private passWord(units: Uint16Array, index: number, from: number, to: number): number {
    const { unitKinds } = this.lexicon;
    let at = from;
    while (at < to && kindAt(unitKinds, units, at) < ALPHABET_SIZE) at += 1;
    this.position += at - index;
    if (at === to || units[at] !== SPACE) return at - index;
    this.position += this.endWordAtSpace();
    return at + 1 - index;
  }

  /** Returns the length of the space. */
  private endWordAtSpace(): 1 {
    this.tracker.endWord();
    this.place.inGap = true;
    return 1;
  }

  /** Passes over further gaps that change nothing: dashes and dots in a table, wide spaces. Returns how many. */
  private passGaps(units: Uint16Array, index: number, to: number): number {
    const { unitKinds } = this.lexicon;
    const { lastMark, newlines } = this.place;
    const isPlainSpace = lastMark === NO_GAP && newlines <= 1;
    let at = index;
    for (; at < to; at += 1) {
      const kind = kindAt(unitKinds, units, at);
      if (kind !== GAPS + SOFT_GAP && !(isPlainSpace && kind === GAPS + SPACE_GAP)) break;
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
        this.readers.markDisguised();
        return;
      case IGNORED:
        return;
      default:
        this.stepGap(character);
    }
  }

  private stepLetter(character: CharacterClass): void {
    if (!this.place.inGap) {
      this.readers.readLetter(character, undefined);
      return;
    }
    this.readers.readLetter(character, this.wordStart());
    this.beginWord();
  }

  private beginWord(): void {
    this.tracker.beginWord();
    this.place.inGap = false;
    this.place.opensSentence = false;
    this.place.newlines = 0;
    this.place.lastMark = NO_GAP;
  }

  private stepGap(character: CharacterClass): void {
    const begin = this.place.inGap && character.readings.length > 0 ? this.wordStart() : undefined;
    this.completeWords();
    const isSpace = character.gap === SPACE_GAP || character.gap === NEWLINE_GAP;
    const width = isSpace ? SPACE_GAP : SOFT_GAP;
    if (character.readings.length > 0) this.readers.readSymbol(character, begin, width);
    else this.readers.readGap(width);
    this.place.inGap = true;
    this.trackSentence(character.gap, isSpace);
  }

  private trackSentence(gap: number, isSpace: boolean): void {
    if (!isSpace) {
      // Quotes and brackets may close after the mark: `... kill." You ...`
      if (gap !== SOFT_GAP) this.place.lastMark = gap;
      return;
    }
    if (gap === NEWLINE_GAP) this.place.newlines += 1;
    if (this.place.lastMark === COLON_GAP) this.place.opensSentence = true;
    if (this.place.lastMark === STOP_GAP || this.place.newlines > 1) {
      this.place.opensSentence = true;
      this.tracker.endSentence();
    }
  }

  private completeWords(): void {
    const any = this.readers.eachComplete((word, reading) => {
      this.tracker.read(word, reading);
    });
    if (any || !this.place.inGap) this.tracker.endWord();
  }

  private wordStart(): WordStart {
    return { start: this.position, opensSentence: this.place.opensSentence, context: this.tracker.waiting };
  }
}
