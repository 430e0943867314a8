import { CharacterTable, NO_GAP, type CharacterClass } from './characters.ts';
import { PhraseGraph } from './phrase-graph.ts';
import type { PhraseGroup, PhraseLists } from './phrase-lists.ts';
import { PhraseSets } from './phrase-sets.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';
import { buildWordTrie, type WordTrie } from './word-trie.ts';

const ASCII = 128;
/** One entry for every UTF-16 unit: V8 gives up on code that reads beyond the end of an array. */
const UNITS = 0x1_0000;

/** The phrase lists, compiled: everything that scans share. */
export interface Lexicon {
  readonly characters: CharacterTable;
  /** The letter that an ASCII character is in its only reading, by its UTF-16 unit; -1 for all others. */
  readonly plainLetters: Int8Array;
  readonly trie: WordTrie;
  readonly phrases: PhraseSets<PhraseGroup>;
}

/** Takes 0.1 to 0.2 s for the whole list, so once per process. Throws on a phrase that cannot be read. */
export function compileLexicon({ groups, terms: sources }: PhraseLists): Lexicon {
  const terms = new Terms(sources);
  const graph = new PhraseGraph<PhraseGroup>();
  for (const group of groups) for (const phrase of group.phrases) graph.add(parsePhrase(phrase, terms), group);
  const isOpening = (word: number) =>
    graph.steps(graph.anywhere).has(word) || graph.steps(graph.sentenceStart).has(word);
  const characters = new CharacterTable();
  return {
    characters,
    plainLetters: Int8Array.from({ length: UNITS }, (_, unit) =>
      unit < ASCII ? plainLetterOf(characters.classOf(unit)) : -1,
    ),
    trie: buildWordTrie(graph.words, isOpening),
    phrases: new PhraseSets(graph),
  };
}

function plainLetterOf({ gap, readings, plain, sure }: CharacterClass): number {
  const [letter = -1] = readings;
  return gap === NO_GAP && readings.length === 1 && plain === 1 && sure === 1 ? letter : -1;
}
