import {
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
import type { Lexicon } from './lexicon.ts';
import { PhraseTracker, type PhraseMatch } from './phrase-tracker.ts';
import { WordReaders, type WordStart } from './word-readers.ts';

/** Told of every match where it is certain, `at` being the position reached; true ends the scan. */
export type MatchListener = (match: PhraseMatch, at: number) => boolean;

/**
 * Reads a text once, character by character, and finds the phrases of a lexicon in it.
 *
 * The state has a fixed bound, so the time is linear in the text whatever it holds, and a text may come in any pieces
 * (cut between code points): matches are the same as for the whole. Positions count UTF-16 units from the beginning.
 */
export class TextScanner {
  private readonly lexicon: Lexicon;
  private readonly readers: WordReaders;
  private readonly tracker: PhraseTracker;
  private position = 0;
  private stopped = false;
  /** What stands between the last letter and here. At the beginning of the text a word may begin. */
  private inGap = true;
  private opensSentence = true;
  private newlines = 0;
  private lastMark = NO_GAP;

  constructor(lexicon: Lexicon, listener: MatchListener) {
    this.lexicon = lexicon;
    this.readers = new WordReaders(lexicon.trie);
    this.tracker = new PhraseTracker(lexicon.phrases, (match) => {
      if (!this.stopped) this.stopped = listener(match, this.position);
    });
  }

  /** How much text has been read. */
  get length(): number {
    return this.position;
  }

  write(text: string): void {
    const { characters } = this.lexicon;
    for (let index = 0; index < text.length && !this.stopped;) {
      const codePoint = text.codePointAt(index) ?? 0;
      const width = codePoint > 0xffff ? 2 : 1;
      const character = characters.classOf(codePoint);
      // Most letters stand in words that no phrase has.
      if (character.gap !== NO_GAP || this.inGap || !this.readers.idle) this.step(character);
      index += width;
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
    return Math.min(this.position, this.readers.heldFrom(), this.tracker.heldFrom());
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
    if (!this.inGap) {
      this.readers.readLetter(character, undefined);
      return;
    }
    this.readers.readLetter(character, this.wordStart());
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
    if (character.readings.length > 0) this.readers.readSymbol(character, begin, width);
    else this.readers.readGap(width);
    this.inGap = true;
    this.trackSentence(character.gap, isSpace);
  }

  private trackSentence(gap: number, isSpace: boolean): void {
    if (!isSpace) {
      // Quotes and brackets may close behind the mark: `... kill." You ...`
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
    const any = this.readers.eachComplete((word, reading) => {
      this.tracker.read(word, reading);
    });
    if (any || !this.inGap) this.tracker.endWord();
  }

  private wordStart(): WordStart {
    return { start: this.position, opensSentence: this.opensSentence, context: this.tracker.waiting };
  }
}
