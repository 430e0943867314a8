import { ALPHABET_SIZE, alphabetIndex, CharacterTable } from './characters.ts';
import { PhraseGraph, PhraseSets } from './phrase-graph.ts';
import type { PhraseGroup, PhraseLists } from './phrase-lists.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';

const ASCII = 128;
const NODES_MAX = 0xffff;

/** The phrase lists, compiled: everything that scans share. */
export interface Lexicon {
  readonly characters: CharacterTable;
  readonly trie: WordTrie;
  readonly phrases: PhraseSets<PhraseGroup>;
}

/** The words of all phrases as a trie: node 0 is the root, and the child of a node by a letter is one array look-up. */
export interface WordTrie {
  /** `children[node * ALPHABET_SIZE + letter]`, 0 for none. */
  readonly children: Uint16Array;
  /** The word that ends at a node, or -1. */
  readonly wordAt: Int32Array;
  /** 1 if a word that can begin a phrase ends at the node or below it. */
  readonly opens: Uint8Array;
  /** 1 for nodes without children. */
  readonly leaf: Uint8Array;
}

interface TrieNode {
  readonly children: number[];
  word: number;
  opens: boolean;
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
  for (let unit = 0; unit < ASCII; unit += 1) characters.classOf(unit);
  return { characters, trie: buildWordTrie(graph.words, isOpening), phrases: new PhraseSets(graph) };
}

/** `isOpening`: whether a phrase can begin with the word of this index. */
function buildWordTrie(words: readonly string[], isOpening: (word: number) => boolean): WordTrie {
  const nodes: TrieNode[] = [];
  const addNode = () => nodes.push({ children: new Array<number>(ALPHABET_SIZE).fill(0), word: -1, opens: false }) - 1;
  addNode();
  words.forEach((word, index) => {
    let at = 0;
    for (const letter of word) {
      const slot = alphabetIndex(letter.codePointAt(0) ?? 0);
      const node = nodes[at];
      if (slot < 0 || node === undefined) throw new Error(`The word '${word}' has characters outside a-z and 0-9.`);
      at = node.children[slot] ||= addNode();
      const child = nodes[at];
      if (child !== undefined && isOpening(index)) child.opens = true;
    }
    const last = nodes[at];
    if (last !== undefined) last.word = index;
  });
  if (nodes.length > NODES_MAX) throw new Error(`The word trie has ${nodes.length} nodes, more than 16 bits can name.`);
  return {
    children: Uint16Array.from(nodes.flatMap((node) => node.children)),
    wordAt: Int32Array.from(nodes, (node) => node.word),
    opens: Uint8Array.from(nodes, (node) => (node.opens ? 1 : 0)),
    leaf: Uint8Array.from(nodes, (node) => (node.children.every((child) => child === 0) ? 1 : 0)),
  };
}
