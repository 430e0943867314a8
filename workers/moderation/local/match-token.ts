import { ALPHABET_SIZE, NO_GAP, SOFT_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, READABLE, UNKNOWN } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { isPlainWordBehind, isWhiteSpace } from './word-ends.ts';

/** The findings of `matchToken` about a token, the text between two pieces of white space. */
export interface PassedToken {
  /** The white space after the token begins here. If only a part could be passed over: its end, after a gap. */
  end: number;
  /** The token was looked at up to here. */
  lookedTo: number;
  /** Its last character may be a gap, so a word may begin after it. */
  inGap: boolean;
  /** Counts only letters that cannot be gaps. */
  words: number;
  /** The last stop or colon after its last letter; NO_GAP: there is none. */
  mark: number;
}

/** Nodes of the trie followed at once. Only text made up to be slow has more. */
const NODES_MAX = 24;
/** Two lists of nodes, used in turn for the nodes before and after a character. Shared by all calls, so none is allocated. */
const before = new Uint16Array(NODES_MAX + 1);
const after = new Uint16Array(NODES_MAX + 1);

/**
 * Passes over a token if no phrase can begin with it, however its characters are read; if `isOpen` (a phrase is open),
 * only if it contains no word of any phrase. That holds for most numbers, and most words with doubled letters or dots
 * in them. More readings are followed, all at once, than the scanner follows, so it would have found nothing here.
 *
 * The token begins at `from`, after a gap. `passed` receives the result. False: the scanner has to read the token, or
 * its end has not arrived yet; a first part, up to `passed.end`, may still be passed over. Asking again before
 * `passed.lookedTo` would make a long token cost the square of its length.
 */
export function matchToken(
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
  // Looks at one character beyond `to`, to see whether the token ends there.
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
    // Read as a letter: each reading leads on from each node, or stays there if it only repeats the last letter.
    let kept = 0;
    if (kind < ALPHABET_SIZE) kept = followAll(table, letters, now, count, kind, mayBegin, next, kept);
    else if (kind === LETTER || kind >= GAPS + READABLE)
      for (const letter of characters.classOf(units[at] ?? 0).readings)
        kept = followAll(table, letters, now, count, letter, mayBegin, next, kept);
    // Read as a gap within a word («k.i.l.l»): the nodes stay, and the word continues after it.
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

/** Adds to `next` (`kept` nodes) where a letter leads from each node, and from the root if a word may begin. */
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

/** Adds a node unless it is there. Returns the new count; more than NODES_MAX means too many. */
function add(nodes: Uint16Array, count: number, node: number): number {
  for (let index = 0; index < count; index += 1) if (nodes[index] === node) return count;
  if (count > NODES_MAX) return count;
  nodes[count] = node;
  return count + 1;
}

/** True if the token's words end at this white space: a word may continue after a single letter («k i l l»). */
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
