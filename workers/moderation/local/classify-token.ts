import { ALPHABET_SIZE, NEWLINE_GAP, NO_GAP, SOFT_GAP, SPACE_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, READABLE, UNKNOWN } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { kindAt } from './word-ends.ts';

/** Tokens with more words are left to the scanner. */
export const TOKEN_WORDS_MAX = 3;

/** The words of a token; they are the same in every text. */
export interface TokenClass {
  /** By their index in the vocabulary; -1: a word that is in no phrase. */
  words: Int16Array;
  count: number;
  /** The last stop or colon after its last letter; NO_GAP: there is none. */
  mark: number;
  /** May be one letter of a spelled-out word («k i l l»): a token of its own only if an ordinary word follows. */
  isSingle: boolean;
}

/** How many readings are followed at once. Only text made up to be slow has more. */
const NODES_MAX = 24;
/** The reading began before a gap, so it may continue a phrase that was open there. */
const CROSSING = 1;
/** The reading's last letter is followed by a gap, so no word ends here. */
const GAPPED = 2;
/** At least one letter is certain. The scanner accepts no word whose letters are all guesses, such as a number. */
const SURE = 4;

interface Readings {
  nodes: Uint16Array;
  flags: Uint8Array;
  count: number;
}

function createReadings(): Readings {
  return { nodes: new Uint16Array(NODES_MAX), flags: new Uint8Array(NODES_MAX), count: 0 };
}

let now = createReadings();
let next = createReadings();

/** False: there is no room. */
function add(to: Readings, node: number, flags: number): boolean {
  for (let index = 0; index < to.count; index += 1) {
    const known = to.flags[index] ?? 0;
    if (to.nodes[index] !== node || (known & GAPPED) !== (flags & GAPPED)) continue;
    to.flags[index] = known | flags;
    return true;
  }
  if (to.count === NODES_MAX) return false;
  to.nodes[to.count] = node;
  to.flags[to.count] = flags;
  to.count += 1;
  return true;
}

/** Adds to `next` where a letter leads from each reading, and from the root if a word may begin. False: too many. */
function followAll({ trie }: Lexicon, letter: number, mayBegin: boolean, sure: number, crossing: number): boolean {
  const { children, letters } = trie;
  const first = mayBegin ? (children[letter] ?? 0) : 0;
  if (first !== 0 && !add(next, first, sure)) return false;
  for (let index = 0; index < now.count; index += 1) {
    const node = now.nodes[index] ?? 0;
    const flags = ((now.flags[index] ?? 0) & (CROSSING | SURE)) | sure | crossing;
    const child = children[node * ALPHABET_SIZE + letter] ?? 0;
    if (child !== 0 && !add(next, child, flags)) return false;
    // A repeated letter stays at its node.
    if (letters[node] === letter && !add(next, node, flags)) return false;
  }
  return true;
}

/** The word that ends at this gap in some reading. -1: none. -2: several, or one begun before an earlier gap. */
function wordHere({ trie }: Lexicon): number {
  let word = -1;
  for (let index = 0; index < now.count; index += 1) {
    const flags = now.flags[index] ?? 0;
    const found = (flags & (GAPPED | SURE)) === SURE ? (trie.wordAt[now.nodes[index] ?? 0] ?? -1) : -1;
    if (found < 0) continue;
    if ((flags & CROSSING) !== 0 || (word >= 0 && word !== found)) return -2;
    word = found;
  }
  return word;
}

/**
 * Finds the words of a token, however its characters are read. False: its meaning depends on its surroundings, so the
 * scanner has to read it each time. Undefined: it has characters that have not been seen yet; ask again once they have.
 *
 * `matchToken` walks the same trie by other rules. It only asks whether there is a word, may wrongly say yes, and runs
 * for every unknown token. This function asks which words there are, must be right, and runs once per token. A single
 * function would slow down the frequent case with work that only this one needs.
 */
export function classifyToken(
  lexicon: Lexicon,
  units: Uint16Array,
  from: number,
  to: number,
  token: TokenClass,
): boolean | undefined {
  const { unitKinds, characters, trie } = lexicon;
  token.count = 0;
  token.mark = NO_GAP;
  token.isSingle = false;
  const first = kindAt(unitKinds, units, from);
  if (to - from === 1 && first >= GAPS + READABLE && (units[from] ?? 0) < 0x80) {
    // An ASCII symbol alone is never a word, because it is only guessed to be a letter.
    const gap = first - READABLE - GAPS;
    token.mark = gap === SOFT_GAP ? NO_GAP : gap;
    token.isSingle = true;
    return true;
  }
  now.count = 0;
  let mayBegin = true;
  const endWord = (): boolean => {
    const word = wordHere(lexicon);
    if (word === -2 || (word >= 0 && mayBegin)) return false;
    if (mayBegin) return true;
    if (token.count === TOKEN_WORDS_MAX) return false;
    token.words[token.count] = word;
    token.count += 1;
    return true;
  };
  for (let at = from; at < to; at += 1) {
    const kind = kindAt(unitKinds, units, at);
    if (kind === UNKNOWN) return undefined;
    if (kind === NOTHING) return false;
    const isGap = kind >= GAPS;
    if (isGap) {
      const gap = (kind & ~READABLE) - GAPS;
      if (gap === SPACE_GAP || gap === NEWLINE_GAP || !endWord()) return false;
      if (gap !== SOFT_GAP) token.mark = gap;
    } else token.mark = NO_GAP;
    next.count = 0;
    const crossing = isGap ? CROSSING : 0;
    if (kind < ALPHABET_SIZE) {
      if (!followAll(lexicon, kind, mayBegin, SURE, 0)) return false;
    } else if (kind === LETTER || kind >= GAPS + READABLE) {
      const { readings, sure } = characters.classOf(units[at] ?? 0);
      for (let index = 0; index < readings.length; index += 1)
        if (!followAll(lexicon, readings[index] ?? 0, mayBegin, index < sure ? SURE : 0, crossing)) return false;
    }
    // If the character may be a gap, words continue after it.
    for (let index = 0; isGap && index < now.count; index += 1) {
      const node = now.nodes[index] ?? 0;
      if (trie.leaf[node] !== 1 && !add(next, node, (now.flags[index] ?? 0) | CROSSING | GAPPED)) return false;
    }
    mayBegin = isGap;
    [now, next] = [next, now];
  }
  if (!endWord()) return false;
  for (let index = 0; index < now.count; index += 1) token.isSingle ||= trie.firsts[now.nodes[index] ?? 0] === 1;
  return true;
}
