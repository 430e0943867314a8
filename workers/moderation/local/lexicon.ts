import { CharacterTable, IGNORED, NO_GAP, ALPHABET_SIZE, alphabetIndex } from './characters.ts';
import type { CharacterClass } from './characters.ts';
import { OpenPhrases } from './open-phrases.ts';
import { PhraseGraph } from './phrase-graph.ts';
import type { PhraseGroup, PhraseLists } from './phrase-lists.ts';
import { PhraseSets } from './phrase-sets.ts';
import { parsePhrase, Terms } from './phrase-syntax.ts';

/** The words of all phrases as a trie: node 0 is the root, and the child of a node by a letter is one array look-up. */
export interface WordTrie {
  /** `children[node * ALPHABET_SIZE + letter]`, 0 for none. */
  readonly children: Uint16Array;
  /** The same, but only along words that can begin a phrase; 0 elsewhere. */
  readonly openings: Uint16Array;
  /** The letter that leads to a node. */
  readonly letters: Uint8Array;
  /** 1 for the nodes of single letters. */
  readonly firsts: Uint8Array;
  /** The word that ends at a node, or -1. */
  readonly wordAt: Int32Array;
  /** 1 if a word that can begin a phrase ends at the node. */
  readonly opensHere: Uint8Array;
  /** 1 if a word that can begin a phrase ends at the node or below it. */
  readonly opens: Uint8Array;
  /** 1 for nodes without children. */
  readonly leaf: Uint8Array;
}

const NODES_MAX = 0xffff;

interface TrieNode {
  readonly children: number[];
  readonly letter: number;
  readonly depth: number;
  word: number;
  opens: boolean;
}

/** `isOpening`: whether a phrase can begin with the word of this index. */
function buildWordTrie(words: readonly string[], isOpening: (word: number) => boolean): WordTrie {
  const nodes: TrieNode[] = [];
  const addNode = (letter: number, depth: number) =>
    nodes.push({ children: new Array<number>(ALPHABET_SIZE).fill(0), letter, depth, word: -1, opens: false }) - 1;
  addNode(0, 0);
  words.forEach((word, index) => {
    let at = 0;
    for (const letter of word) {
      const slot = alphabetIndex(letter.codePointAt(0) ?? 0);
      const node = nodes[at];
      if (slot < 0 || node === undefined) throw new Error(`The word '${word}' has characters outside a-z and 0-9.`);
      at = node.children[slot] ||= addNode(slot, node.depth + 1);
      const child = nodes[at];
      if (child !== undefined && isOpening(index)) child.opens = true;
    }
    const last = nodes[at];
    if (last !== undefined) last.word = index;
  });
  if (nodes.length > NODES_MAX) throw new Error(`The word trie has ${nodes.length} nodes, more than 16 bits can name.`);
  const children = Uint16Array.from(nodes.flatMap((node) => node.children));
  const openings = children.map((child) => (nodes[child]?.opens === true ? child : 0));
  return {
    children,
    openings,
    letters: Uint8Array.from(nodes, (node) => node.letter),
    firsts: Uint8Array.from(nodes, (node) => (node.depth === 1 ? 1 : 0)),
    wordAt: Int32Array.from(nodes, (node) => node.word),
    opensHere: Uint8Array.from(nodes, ({ word }) => (word >= 0 && isOpening(word) ? 1 : 0)),
    opens: Uint8Array.from(nodes, (node) => (node.opens ? 1 : 0)),
    leaf: Uint8Array.from(nodes, (node) => (node.children.every((child) => child === 0) ? 1 : 0)),
  };
}

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
  readonly phrases: PhraseSets<PhraseGroup>;
  readonly openPhrases: OpenPhrases;
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
  const phrases = new PhraseSets(graph);
  const lexicon = { characters, unitKinds, trie, phrases, openPhrases: new OpenPhrases(phrases) };
  for (let unit = 0; unit < ASCII; unit += 1) learnUnit(lexicon, unit, characters.classOf(unit));
  return lexicon;
}

/** Notes the kind of a character of one unit. With and without an accent a letter has one class, and so one kind. */
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
