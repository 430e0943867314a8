import { CharacterTable, IGNORED, NO_GAP, type CharacterClass } from './characters.ts';
import { PhraseGraph } from './phrase-graph.ts';
import type { PhraseGroup, PhraseLists } from './phrase-lists.ts';
import { PhraseSets } from './phrase-sets.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';
import { buildWordTrie, type WordTrie } from './word-trie.ts';

const ASCII = 128;
/** One entry for every UTF-16 unit: V8 gives up on code that reads beyond the end of an array. */
const UNITS = 0x1_0000;

/**
 * What a UTF-16 unit is. One below `ALPHABET_SIZE` is plain: a letter, this one, in its only reading. Gaps are `GAPS` and
 * their own number.
 */
/** Any other letter, or what stands for one. */
export const LETTER = 40;
/** As if it were not there. */
export const NOTHING = 41;
export const UNKNOWN = 42;
export const GAPS = 64;
/** Added where it may be a letter as well. */
export const READABLE = 32;

/** The phrase lists, compiled: everything that scans share. */
export interface Lexicon {
  readonly characters: CharacterTable;
  /** What each UTF-16 unit is; those beyond ASCII are found out on first sight, by `learnUnit`. */
  readonly unitKinds: Uint8Array;
  readonly trie: WordTrie;
  /** By the place of a word in the vocabulary: 1 where a phrase can begin with it. */
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
 * Notes what a character is, unless it takes two units. A letter with an accent is what the letter without is: both have
 * one class.
 */
export function learnUnit(
  { unitKinds }: Pick<Lexicon, 'unitKinds'>,
  codePoint: number,
  character: CharacterClass,
): void {
  // Half a character alone is a gap, and with its other half it may be a letter.
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
