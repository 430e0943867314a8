import { ALPHABET_SIZE, SPACE_GAP } from './characters.ts';
import type { CharacterClass } from './characters.ts';
import { earliestStart } from './phrase-tracker.ts';
import type { PhraseThread, WordReading } from './phrase-tracker.ts';
import type { WordTrie } from './lexicon.ts';

export interface WordStart {
  readonly start: number;
  readonly opensSentence: boolean;
  readonly context: readonly PhraseThread[];
}

/** One way of reading the text at hand as a word of the vocabulary. */
interface WordReader extends WordStart {
  node: number;
  letter: number;
  letters: number;
  /** The widest gap since the last letter. */
  gap: number;
  /** There are gaps inside the word. */
  broken: boolean;
  /** The gaps are white space, so they stand between all letters: `b o m b`. */
  spelled: boolean;
  guessed: number;
  disguised: boolean;
}

/** Only made-up text (`i!i!i!`) has more readings at once, and it must not cost more. */
const READERS_MAX = 8;
/** Leaves room for the plain words in such a text. */
const DISGUISED_READERS_MAX = 6;

/** Reads the words of a trie from a row of characters, in every way that the characters can be read. */
export class SpellingVariants {
  private readonly trie: WordTrie;
  private active: WordReader[] = [];

  constructor(trie: WordTrie) {
    this.trie = trie;
  }

  get idle(): boolean {
    return this.active.length === 0;
  }

  /** Adds the only reader of a word, after `letters` plain letters of it were read elsewhere. */
  place({ start, opensSentence, context }: WordStart, node: number, letter: number, letters: number): void {
    this.active.push({
      start,
      opensSentence,
      context,
      node,
      letter,
      letters,
      gap: 0,
      broken: false,
      spelled: false,
      guessed: 0,
      disguised: false,
    });
  }

  /** Reads a character as a letter, in all its readings; `begin` is given if a word may begin with it. */
  readLetter(character: CharacterClass, begin: WordStart | undefined): void {
    const before = this.active;
    const [letter] = character.readings;
    const [reader] = before;
    if (letter !== undefined && character.readings.length === 1 && character.plain === 1 && begin === undefined) {
      if (
        reader !== undefined &&
        before.length === 1 &&
        reader.gap === 0 &&
        !reader.spelled &&
        letter !== reader.letter
      ) {
        this.moveAlone(reader, letter);
        return;
      }
    }
    this.active = [];
    this.readAll(before, character, begin);
  }

  /** Reads a character as a letter and as a gap: every reader continues in both ways. */
  readSymbol(character: CharacterClass, begin: WordStart | undefined, gap: number): void {
    const before = this.active;
    this.active = [];
    this.readAll(before, character, begin);
    for (const reader of before) {
      const slot = this.widenGap(reader, gap)
        ? this.slotFor(reader, reader.node, reader.gap, reader.spelled, true)
        : -1;
      if (slot >= 0) this.active[slot] = reader;
    }
  }

  readGap(gap: number): void {
    let kept = 0;
    for (const reader of this.active) if (this.widenGap(reader, gap)) this.active[kept++] = reader;
    while (this.active.length > kept) this.active.pop();
  }

  /** An invisible character has been read; inside a word it is there to hide the word. */
  markDisguised(): void {
    for (const reader of this.active) if (reader.gap === 0) reader.disguised = true;
  }

  /** Calls back for every word that is complete if a gap comes here; true if there was one. */
  eachComplete(read: (word: number, reading: WordReading) => void): boolean {
    let any = false;
    for (const reader of this.active) {
      const word = reader.gap === 0 ? (this.trie.wordAt[reader.node] ?? -1) : -1;
      if (word < 0 || !isBelievable(reader)) continue;
      any = true;
      read(word, reader);
    }
    return any;
  }

  /** The earliest phrase that a word being read may begin or continue begins here. */
  heldFrom(): number {
    let earliest = Infinity;
    for (const { node, start, context } of this.active) {
      if (this.trie.opens[node] === 1) earliest = Math.min(earliest, start);
      if (context.length > 0) earliest = Math.min(earliest, earliestStart(context));
    }
    return earliest;
  }

  private readAll(before: readonly WordReader[], character: CharacterClass, begin: WordStart | undefined): void {
    const { readings, plain, sure } = character;
    for (let index = 0; index < readings.length; index += 1) {
      const letter = readings[index] ?? 0;
      const disguised = index >= plain;
      const guessed = index >= sure ? 1 : 0;
      for (const reader of before) this.follow(reader, letter, disguised, guessed);
      if (begin !== undefined) this.begin(begin, letter, disguised, guessed);
    }
  }

  /** Most of the time there is one reader and one reading: the reader moves on or is dropped. */
  private moveAlone(reader: WordReader, letter: number): void {
    const node = this.trie.children[reader.node * ALPHABET_SIZE + letter] ?? 0;
    if (node === 0 || (reader.context.length === 0 && this.trie.opens[node] === 0)) {
      this.active.pop();
      return;
    }
    reader.node = node;
    reader.letter = letter;
    reader.letters += 1;
  }

  private begin(at: WordStart, letter: number, disguised: boolean, guessed: number): void {
    const { start, opensSentence, context } = at;
    const node = this.trie.children[letter] ?? 0;
    if (node === 0 || (context.length === 0 && this.trie.opens[node] === 0)) return;
    const slot = this.slotFor(at, node, 0, false, disguised);
    if (slot < 0) return;
    this.active[slot] = {
      start,
      opensSentence,
      context,
      node,
      letter,
      letters: 1,
      gap: 0,
      broken: false,
      spelled: false,
      guessed,
      disguised,
    };
  }

  private follow(reader: WordReader, letter: number, hidden: boolean, guessed: number): void {
    if (reader.spelled && reader.gap === 0) return;
    const node = this.trie.children[reader.node * ALPHABET_SIZE + letter] ?? 0;
    if (node !== 0 && (reader.context.length > 0 || this.trie.opens[node] === 1)) {
      this.advance(reader, node, letter, hidden, guessed);
    }
    // `kiiiill`: a repeated letter stays at its node.
    if (letter !== reader.letter || reader.gap > 0) return;
    const slot = this.slotFor(reader, reader.node, 0, reader.spelled, true);
    if (slot >= 0) this.active[slot] = { ...reader, disguised: true };
  }

  private advance(reader: WordReader, node: number, letter: number, hidden: boolean, guessed: number): void {
    const broken = reader.broken || reader.gap > 0;
    const spelled = reader.spelled || reader.gap === SPACE_GAP;
    const disguised = reader.disguised || hidden || reader.gap > 0;
    const slot = this.slotFor(reader, node, 0, spelled, disguised);
    if (slot < 0) return;
    this.active[slot] = {
      start: reader.start,
      opensSentence: reader.opensSentence,
      context: reader.context,
      node,
      letter,
      letters: reader.letters + 1,
      gap: 0,
      broken,
      spelled,
      guessed: reader.guessed + guessed,
      disguised,
    };
  }

  /** False if the word cannot continue after the gap. */
  private widenGap(reader: WordReader, gap: number): boolean {
    if (gap > reader.gap) reader.gap = gap;
    if (this.trie.leaf[reader.node] === 1) return false;
    return reader.gap < SPACE_GAP || reader.spelled || reader.letters === 1;
  }

  /**
   * Returns the index for a reader among the active ones; -1: there is no room. Of two at the same node one is kept:
   * that which may continue a phrase, or else the later, which holds back less. So there are never more readers than
   * readings.
   */
  private slotFor(from: WordStart, node: number, gap: number, spelled: boolean, disguised: boolean): number {
    const { active } = this;
    for (let index = 0; index < active.length; index += 1) {
      const known = active[index];
      if (known?.node !== node || known.gap !== gap || known.spelled !== spelled) continue;
      const continues = from.context.length > 0 || known.context.length === 0;
      return continues && from.start >= known.start ? index : -1;
    }
    return active.length < (disguised ? DISGUISED_READERS_MAX : READERS_MAX) ? active.length : -1;
  }
}

/** False if too many letters are guesses: `k 1 k 3` and `600k` are formulas and numbers. */
function isBelievable({ letters, guessed, broken }: WordReader): boolean {
  return guessed * (broken ? 3 : 2) <= letters;
}
