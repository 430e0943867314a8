import { ALPHABET_SIZE, SPACE_GAP, type CharacterClass } from './characters.ts';
import { earliestStart, type PhraseThread, type WordReading } from './phrase-tracker.ts';
import type { WordTrie } from './word-trie.ts';

/** Where a word may begin, and what it may continue. */
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
  /** How many letters are guesses. */
  guessed: number;
  disguised: boolean;
}

interface LetterReading {
  readonly letter: number;
  readonly disguised: boolean;
  readonly guessed: number;
}

/** More readings at once come from made-up text only (`i!i!i!`), which may not cost more. */
const READERS_MAX = 12;

/** Reads the words of a trie out of a row of characters, in all the ways that the characters can be read. */
export class WordReaders {
  private readonly trie: WordTrie;
  private active: WordReader[] = [];

  constructor(trie: WordTrie) {
    this.trie = trie;
  }

  get idle(): boolean {
    return this.active.length === 0;
  }

  /** Reads a character as a letter, in all its readings; `begin` is given where a word may begin with it. */
  readLetter(character: CharacterClass, begin: WordStart | undefined): void {
    const before = this.active;
    this.active = [];
    this.readAll(before, character, begin);
  }

  /** Reads a character as a letter and as a gap: every reader goes on in both ways. */
  readSymbol(character: CharacterClass, begin: WordStart | undefined, gap: number): void {
    const before = this.active;
    this.active = [];
    this.readAll(before, character, begin);
    for (const reader of before) if (this.widenGap(reader, gap)) this.add(reader);
  }

  readGap(gap: number): void {
    let kept = 0;
    for (const reader of this.active) if (this.widenGap(reader, gap)) this.active[kept++] = reader;
    while (this.active.length > kept) this.active.pop();
  }

  /** An invisible character: inside a word it is there to hide the word. */
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

  /** Where the oldest phrase begins that a word being read may begin or continue. */
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
      const reading = { letter: readings[index] ?? 0, disguised: index >= plain, guessed: index >= sure ? 1 : 0 };
      for (const reader of before) this.follow(reader, reading);
      if (begin !== undefined) this.begin(begin, reading);
    }
  }

  private begin({ start, opensSentence, context }: WordStart, { letter, disguised, guessed }: LetterReading): void {
    const node = this.trie.children[letter] ?? 0;
    if (node === 0 || (context.length === 0 && this.trie.opens[node] === 0)) return;
    const place = { node, letter, letters: 1, gap: 0, broken: false, spelled: false };
    this.add({ ...place, start, opensSentence, context, disguised, guessed });
  }

  private follow(reader: WordReader, { letter, disguised, guessed }: LetterReading): void {
    if (reader.spelled && reader.gap === 0) return;
    const node = this.trie.children[reader.node * ALPHABET_SIZE + letter] ?? 0;
    if (node !== 0 && (reader.context.length > 0 || this.trie.opens[node] === 1)) {
      this.add({
        start: reader.start,
        opensSentence: reader.opensSentence,
        context: reader.context,
        node,
        letter,
        letters: reader.letters + 1,
        gap: 0,
        broken: reader.broken || reader.gap > 0,
        spelled: reader.spelled || reader.gap === SPACE_GAP,
        guessed: reader.guessed + guessed,
        disguised: reader.disguised || disguised || reader.gap > 0,
      });
    }
    // `kiiiill`: a repeated letter stays where it is.
    if (letter === reader.letter && reader.gap === 0) this.add({ ...reader, disguised: true });
  }

  /** False when the word cannot go on behind the gap. */
  private widenGap(reader: WordReader, gap: number): boolean {
    if (gap > reader.gap) reader.gap = gap;
    if (this.trie.leaf[reader.node] === 1) return false;
    return reader.gap < SPACE_GAP || reader.spelled || reader.letters === 1;
  }

  /**
   * Two readers at the same place are one: the one that may continue a phrase, else the later, which holds back less.
   * So there are never more than the text has readings, whatever its length.
   */
  private add(reader: WordReader): void {
    const { active } = this;
    for (let index = 0; index < active.length; index += 1) {
      const known = active[index];
      if (known?.node !== reader.node || known.gap !== reader.gap || known.spelled !== reader.spelled) continue;
      const continues = reader.context.length > 0 || known.context.length === 0;
      if (continues && reader.start >= known.start) active[index] = reader;
      return;
    }
    if (active.length < READERS_MAX) active.push(reader);
  }
}

/** False when too many letters are guesses: `k 1 k 3` and `600k` are formulas and numbers. */
function isBelievable({ letters, guessed, broken }: WordReader): boolean {
  return guessed * (broken ? 3 : 2) <= letters;
}
