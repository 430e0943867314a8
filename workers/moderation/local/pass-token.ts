import { ALPHABET_SIZE, NO_GAP, SOFT_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, READABLE, UNKNOWN } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { isPlainWordBehind, isWhiteSpace } from './word-ends.ts';

/** What stands between two spaces. */
export interface PassedToken {
  /** Where it ends: at white space. Of what has to be read: where the part ends that was passed over, behind a gap. */
  end: number;
  /** How far it was looked at. */
  lookedTo: number;
  /** Its last character may be a gap. */
  inGap: boolean;
  /** How many words it has, each of letters that cannot be gaps. */
  words: number;
  /** The last stop or colon behind its last letter; NO_GAP: there is none. */
  mark: number;
}

/** Where a text may stand within words of the vocabulary. More at once come from made-up text only. */
const NODES_MAX = 24;
const before = new Uint16Array(NODES_MAX + 1);
const after = new Uint16Array(NODES_MAX + 1);

/**
 * Passes over what stands between two spaces, where it cannot begin a phrase however its characters are read, or, where
 * one is open, has no word of any: numbers, words with doubled letters or points in them. It follows all readings at
 * once, and more of them than the scanner does, so what it passes over the scanner would have read in vain. False: it has
 * to be read, or its end is not there yet, but for the part in front of a gap behind which no word goes on; whoever asks
 * again before `passed.lookedTo` may look at the same characters for each character of the token.
 *
 * No word may be under way, and the token begins at `from`. `passed` says where it ends.
 */
export function passToken(
  { unitKinds, characters, trie }: Lexicon,
  units: Uint16Array,
  from: number,
  to: number,
  isOpen: boolean,
  passed: PassedToken,
): boolean {
  const { opensHere, wordAt, leaf, letters } = trie;
  const table = isOpen ? trie.children : trie.openings;
  let [now, next] = [before, after];
  let count = 0;
  let mayBegin = true;
  let words = 0;
  let mark = NO_GAP;
  passed.end = from;
  passed.words = 0;
  passed.mark = NO_GAP;
  passed.inGap = true;
  // White space behind the part that is read is read next.
  for (let at = from; at < to || (at === to && at < units.length); at += 1) {
    const kind = unitKinds[units[at] ?? 0] ?? UNKNOWN;
    passed.lookedTo = at;
    if (kind === UNKNOWN || (at === to && !isWhiteSpace(kind))) return false;
    if (kind === NOTHING) continue;
    if (kind >= GAPS) {
      for (let index = 0; index < count; index += 1) {
        const node = now[index] ?? 0;
        if (isOpen ? (wordAt[node] ?? 0) >= 0 : opensHere[node] === 1) return false;
      }
      if (!mayBegin) words += 1;
      const gap = (kind & ~READABLE) - GAPS;
      if (isWhiteSpace(kind)) {
        if (!endsThere(trie, now, count, unitKinds, units, at)) return false;
        passed.end = at;
        passed.words = words;
        passed.inGap = mayBegin;
        passed.mark = mark;
        return true;
      }
      if (gap !== SOFT_GAP) mark = gap;
    } else {
      mark = NO_GAP;
      if (count === 0 && !mayBegin) continue;
    }
    // Where it may be a letter it goes on in every reading, or stays where it is as a letter that comes again.
    let kept = 0;
    if (kind < ALPHABET_SIZE) kept = followAll(table, letters, now, count, kind, mayBegin, next, kept);
    else if (kind === LETTER || kind >= GAPS + READABLE)
      for (const letter of characters.classOf(units[at] ?? 0).readings)
        kept = followAll(table, letters, now, count, letter, mayBegin, next, kept);
    // Where it may be a gap, words go on behind it.
    if (kind >= GAPS)
      for (let index = 0; index < count; index += 1)
        if (leaf[now[index] ?? 0] !== 1) kept = add(next, kept, now[index] ?? 0);
    if (kept > NODES_MAX) return false;
    mayBegin = kind >= GAPS;
    if (kept === 0 && mayBegin) {
      passed.end = at + 1;
      passed.words = words;
      passed.mark = mark;
    }
    count = kept;
    [now, next] = [next, now];
  }
  passed.lookedTo = to;
  return false;
}

/** Where a letter leads from all of the nodes, and from the beginning of a word. */
function followAll(
  table: Uint16Array,
  letters: Uint8Array,
  nodes: Uint16Array,
  count: number,
  letter: number,
  mayBegin: boolean,
  next: Uint16Array,
  kept: number,
): number {
  if (mayBegin) {
    const child = table[letter] ?? 0;
    if (child !== 0) kept = add(next, kept, child);
  }
  for (let index = 0; index < count; index += 1) {
    const node = nodes[index] ?? 0;
    const child = table[node * ALPHABET_SIZE + letter] ?? 0;
    if (child !== 0) kept = add(next, kept, child);
    if (letters[node] === letter) kept = add(next, kept, node);
  }
  return kept;
}

/** Adds a node that is not there; one too many says that there are more. */
function add(nodes: Uint16Array, count: number, node: number): number {
  for (let index = 0; index < count; index += 1) if (nodes[index] === node) return count;
  if (count > NODES_MAX) return count;
  nodes[count] = node;
  return count + 1;
}

/** A word of more than one letter is over at a space; one of a single letter only if it is no word of single letters. */
function endsThere(
  { firsts }: Lexicon['trie'],
  nodes: Uint16Array,
  count: number,
  kinds: Uint8Array,
  units: Uint16Array,
  at: number,
): boolean {
  if (at + 2 >= units.length) return false;
  let isSingle = false;
  for (let index = 0; index < count; index += 1) isSingle ||= firsts[nodes[index] ?? 0] === 1;
  return !isSingle || isPlainWordBehind(kinds, units, at);
}
