import { ALPHABET_SIZE, alphabetIndex } from './characters.ts';

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
export function buildWordTrie(words: readonly string[], isOpening: (word: number) => boolean): WordTrie {
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
