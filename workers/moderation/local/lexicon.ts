import type { ModerationCategory } from '../moderator.ts';
import { CharacterTable } from './characters.ts';
import { PhraseGraph } from './phrase-graph.ts';
import { PhraseSets } from './phrase-sets.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';
import { buildWordTrie, type WordTrie } from './word-trie.ts';

/** Phrases that mean the same to moderation. */
export interface PhraseGroup {
  /** Empty: the phrases are harmless, and every match that ends with one of them and lies within it is dropped. */
  readonly categories: readonly ModerationCategory[];
  /** 0 to 1. */
  readonly score: number;
  /** The score when the text hides the phrase (`b0mb`, `b o m b`): hiding shows what is meant. Default: `score`. */
  readonly disguisedScore?: number;
  /** In the notation of phrase-syntax.ts. */
  readonly phrases: readonly string[];
}

/** The phrase lists, compiled: everything that scans share. */
export interface Lexicon {
  readonly characters: CharacterTable;
  readonly trie: WordTrie;
  readonly phrases: PhraseSets<PhraseGroup>;
}

/** Takes 0.1 to 0.2 s for the whole list, so once per process. Throws on a phrase that cannot be read. */
export function compileLexicon(groups: readonly PhraseGroup[], termSources: Readonly<Record<string, string>>): Lexicon {
  const terms = new Terms(termSources);
  const graph = new PhraseGraph<PhraseGroup>();
  for (const group of groups) for (const phrase of group.phrases) graph.add(parsePhrase(phrase, terms), group);
  const isOpening = (word: number) =>
    graph.steps(graph.anywhere).has(word) || graph.steps(graph.sentenceStart).has(word);
  return {
    characters: new CharacterTable(),
    trie: buildWordTrie(graph.words, isOpening),
    phrases: new PhraseSets(graph),
  };
}
