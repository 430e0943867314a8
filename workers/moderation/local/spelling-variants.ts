import { ALPHABET_SIZE, SPACE_GAP, type CharacterClass } from './characters.ts';
import { earliestStart, type PhraseThread, type WordReading } from './phrase-tracker.ts';
import type { WordTrie } from './lexicon.ts';

/** Where a word may begin, and what it may continue. */
export interface WordStart {
  readonly start: number;
  readonly opensSentence: boolean;
  readonly context: readonly PhraseThread[];
}

/** One way of reading the text at hand as a word of the vocabulary. */
interface SpellingVariant extends WordStart {
  node: number;
  letter: number;
  letters: number;
  /** The widest gap since the last letter. */
  gap: number;
  /** There are gaps inside the word. */
  broken: boolean;
  /** The gaps are white space, so they stand between all letters: `b o m b`. */
  spelled: boolean;
  /** How many of the letters are guesses. */
  guessed: number;
  disguised: boolean;
}

/** Only made-up text (`i!i!i!`) has more readings at once, and it must not cost more. */
const VARIANTS_MAX = 8;
/** Leaves room for the plain words in such a text. */
const DISGUISED_VARIANTS_MAX = 6;

/** Reads the words of a trie from a row of characters, in every way that the characters can be read. */
export class SpellingVariants {
  private readonly trie: WordTrie;
  private active: SpellingVariant[] = [];

  constructor(trie: WordTrie) {
    this.trie = trie;
  }

  get idle(): boolean {
    return this.active.length === 0;
  }

  /** Adds the only variant of a word, after `letters` plain letters of it were read elsewhere. */
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
    const [variant] = before;
    if (letter !== undefined && character.readings.length === 1 && character.plain === 1 && begin === undefined) {
      if (
        variant !== undefined &&
        before.length === 1 &&
        variant.gap === 0 &&
        !variant.spelled &&
        letter !== variant.letter
      ) {
        this.moveAlone(variant, letter);
        return;
      }
    }
    this.active = [];
    this.readAll(before, character, begin);
  }

  /** Reads a character as a letter and as a gap: every variant continues in both ways. */
  readSymbol(character: CharacterClass, begin: WordStart | undefined, gap: number): void {
    const before = this.active;
    this.active = [];
    this.readAll(before, character, begin);
    for (const variant of before) {
      const slot = this.widenGap(variant, gap)
        ? this.slotFor(variant, variant.node, variant.gap, variant.spelled, true)
        : -1;
      if (slot >= 0) this.active[slot] = variant;
    }
  }

  readGap(gap: number): void {
    let kept = 0;
    for (const variant of this.active) if (this.widenGap(variant, gap)) this.active[kept++] = variant;
    while (this.active.length > kept) this.active.pop();
  }

  /** An invisible character has been read; inside a word it is there to hide the word. */
  markDisguised(): void {
    for (const variant of this.active) if (variant.gap === 0) variant.disguised = true;
  }

  /** Calls back for every word that is complete if a gap comes here; true if there was one. */
  eachComplete(read: (word: number, reading: WordReading) => void): boolean {
    let any = false;
    for (const variant of this.active) {
      const word = variant.gap === 0 ? (this.trie.wordAt[variant.node] ?? -1) : -1;
      if (word < 0 || !isBelievable(variant)) continue;
      any = true;
      read(word, variant);
    }
    return any;
  }

  /** Where the earliest phrase begins that a word being read may begin or continue. */
  heldFrom(): number {
    let earliest = Infinity;
    for (const { node, start, context } of this.active) {
      if (this.trie.opens[node] === 1) earliest = Math.min(earliest, start);
      if (context.length > 0) earliest = Math.min(earliest, earliestStart(context));
    }
    return earliest;
  }

  private readAll(before: readonly SpellingVariant[], character: CharacterClass, begin: WordStart | undefined): void {
    const { readings, plain, sure } = character;
    for (let index = 0; index < readings.length; index += 1) {
      const letter = readings[index] ?? 0;
      const disguised = index >= plain;
      const guessed = index >= sure ? 1 : 0;
      for (const variant of before) this.follow(variant, letter, disguised, guessed);
      if (begin !== undefined) this.begin(begin, letter, disguised, guessed);
    }
  }

  /** Most of the time there is one variant and one reading: the variant moves on or is dropped. */
  private moveAlone(variant: SpellingVariant, letter: number): void {
    const node = this.trie.children[variant.node * ALPHABET_SIZE + letter] ?? 0;
    if (node === 0 || (variant.context.length === 0 && this.trie.opens[node] === 0)) {
      this.active.pop();
      return;
    }
    variant.node = node;
    variant.letter = letter;
    variant.letters += 1;
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

  private follow(variant: SpellingVariant, letter: number, hidden: boolean, guessed: number): void {
    if (variant.spelled && variant.gap === 0) return;
    const node = this.trie.children[variant.node * ALPHABET_SIZE + letter] ?? 0;
    if (node !== 0 && (variant.context.length > 0 || this.trie.opens[node] === 1)) {
      this.advance(variant, node, letter, hidden, guessed);
    }
    // `kiiiill`: a repeated letter stays at its node.
    if (letter !== variant.letter || variant.gap > 0) return;
    const slot = this.slotFor(variant, variant.node, 0, variant.spelled, true);
    if (slot >= 0) this.active[slot] = { ...variant, disguised: true };
  }

  private advance(variant: SpellingVariant, node: number, letter: number, hidden: boolean, guessed: number): void {
    const broken = variant.broken || variant.gap > 0;
    const spelled = variant.spelled || variant.gap === SPACE_GAP;
    const disguised = variant.disguised || hidden || variant.gap > 0;
    const slot = this.slotFor(variant, node, 0, spelled, disguised);
    if (slot < 0) return;
    this.active[slot] = {
      start: variant.start,
      opensSentence: variant.opensSentence,
      context: variant.context,
      node,
      letter,
      letters: variant.letters + 1,
      gap: 0,
      broken,
      spelled,
      guessed: variant.guessed + guessed,
      disguised,
    };
  }

  /** False if the word cannot continue after the gap. */
  private widenGap(variant: SpellingVariant, gap: number): boolean {
    if (gap > variant.gap) variant.gap = gap;
    if (this.trie.leaf[variant.node] === 1) return false;
    return variant.gap < SPACE_GAP || variant.spelled || variant.letters === 1;
  }

  /**
   * The index for a variant among the active ones; -1: there is no room. Of two variants at the same node only one is
   * kept: the one that may continue a phrase, or else the later one, which holds back less. So there are never more
   * variants than readings.
   */
  private slotFor(from: WordStart, node: number, gap: number, spelled: boolean, disguised: boolean): number {
    const { active } = this;
    for (let index = 0; index < active.length; index += 1) {
      const known = active[index];
      if (known?.node !== node || known.gap !== gap || known.spelled !== spelled) continue;
      const continues = from.context.length > 0 || known.context.length === 0;
      return continues && from.start >= known.start ? index : -1;
    }
    return active.length < (disguised ? DISGUISED_VARIANTS_MAX : VARIANTS_MAX) ? active.length : -1;
  }
}

/** False if too many letters are guesses: `k 1 k 3` and `600k` are formulas and numbers. */
function isBelievable({ letters, guessed, broken }: SpellingVariant): boolean {
  return guessed * (broken ? 3 : 2) <= letters;
}
