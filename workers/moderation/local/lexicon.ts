import { CharacterTable, IGNORED, NO_GAP, type CharacterClass } from './characters.ts';
import { PhraseGraph } from './phrase-graph.ts';
import type { PhraseGroup, PhraseLists } from './phrase-lists.ts';
import { PhraseSets } from './phrase-sets.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';
import { buildWordTrie, type WordTrie } from './word-trie.ts';

const ASCII = 128;
/** One entry for every UTF-16 unit: V8 stops optimizing code that reads beyond the end of an array. */
const UNITS = 0x1_0000;

/**
 * Kinds of UTF-16 units. A kind below `ALPHABET_SIZE` is a plain letter, given as the index of its only reading in the
 * alphabet. A gap is `GAPS` plus its own number.
 */
/** Any other letter, or a character that stands for one. */
export const LETTER = 40;
/** Read as if it were absent. */
export const NOTHING = 41;
export const UNKNOWN = 42;
export const GAPS = 64;
/** Added to a gap that may also be a letter. */
export const READABLE = 32;

/** The phrase lists, compiled: everything that scans share. */
export interface Lexicon {
  readonly characters: CharacterTable;
  /** The kind of each UTF-16 unit; `learnUnit` adds those beyond ASCII on first sight. */
  readonly unitKinds: Uint8Array;
  readonly trie: WordTrie;
  /** By a word's place in the vocabulary: 1 if a phrase can begin with the word. */
  readonly isOpening: Uint8Array;
  readonly phrases: PhraseSets<PhraseGroup>;
}

/** Takes 0.1 to 0.2 s for the whole list, so once per process. Throws on a phrase that cannot be read. */
export function compileLexicon({ groups, terms: sources }: PhraseLists): Lexicon {
  const terms = new Terms(sources);
  const graph = new PhraseGraph<PhraseGroup>();
  for (const group of groups) for (const phrase of group.phrases) graph.add(parsePhrase(phrase, terms), group);
  graph.close();
  const isOpening = (word: number) =>
    graph.steps(graph.anywhere).has(word) || graph.steps(graph.sentenceStart).has(word);
  const characters = new CharacterTable();
  const unitKinds = new Uint8Array(UNITS).fill(UNKNOWN);
  const trie = buildWordTrie(graph.words, isOpening);
  const openings = Uint8Array.from(graph.words, (_, word) => (isOpening(word) ? 1 : 0));
  const lexicon = { characters, unitKinds, trie, isOpening: openings, phrases: new PhraseSets(graph) };
  for (let unit = 0; unit < ASCII; unit += 1) learnUnit(lexicon, unit, characters.classOf(unit));
  return lexicon;
}

/**
 * Notes the kind of a character, unless it takes two units. A letter has the same kind with and without an accent,
 * because both have one class.
 */
export function learnUnit({ unitKinds }: Lexicon, codePoint: number, character: CharacterClass): void {
  // Half a character is a gap on its own, but may be a letter together with its other half.
  const isHalf = codePoint >= 0xd800 && codePoint < 0xe000;
  if (codePoint >= UNITS || isHalf || unitKinds[codePoint] !== UNKNOWN) return;
  const letter = plainLetterOf(character);
  unitKinds[codePoint] = letter === -1 ? kindOf(character) : letter;
}

function kindOf({ gap, readings }: CharacterClass): number {
  if (gap === NO_GAP) return LETTER;
  if (gap >= IGNORED) return NOTHING;
  return GAPS + gap + (readings.length > 0 ? READABLE : 0);
}

function plainLetterOf({ gap, readings, plain, sure }: CharacterClass): number {
  const [letter = -1] = readings;
  return gap === NO_GAP && readings.length === 1 && plain === 1 && sure === 1 ? letter : -1;
}
