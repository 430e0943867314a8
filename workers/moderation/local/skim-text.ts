import { ALPHABET_SIZE, COLON_GAP, NEWLINE_GAP, NO_GAP, SOFT_GAP, SPACE_GAP, STOP_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, PLAIN, READABLE, UNKNOWN } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import type { PhraseGroup } from './phrase-lists.ts';
import type { PhraseSet } from './phrase-sets.ts';

/** Where a text stands between its letters, words and sentences. */
export interface TextPlace {
  /** What comes stands behind a gap, or at the beginning of the text: a word may begin. */
  inGap: boolean;
  opensSentence: boolean;
  /** Since the last letter. */
  newlines: number;
  lastMark: number;
}

/**
 * Passes over text in which no phrase goes beyond its first word, while none is open and no word is being read: most of
 * any text. Stops in front of what may go further, of what it does not know, and of a first word that is the last one.
 * Returns how many characters it has read and moves `place` on. Does nothing that reading them one by one would not do;
 * it is one loop over tables, as that is what compilers make the most of.
 */
export function skimText(
  { unitKinds, plainLetters, trie, phrases }: Lexicon,
  place: TextPlace,
  text: string,
  from: number,
  to: number,
): number {
  const { children, opens, wordAt } = trie;
  let { inGap, opensSentence, newlines, lastMark } = place;
  let at = from;
  /** What the last word has begun, and the place in front of that word. */
  let begun: PhraseSet<PhraseGroup> | undefined;
  let begunAt = from;
  let [opensBegun, newlinesBegun, markBegun] = [opensSentence, newlines, lastMark];

  while (at < to) {
    const kind = unitKinds[text.charCodeAt(at)] ?? UNKNOWN;
    if (kind === PLAIN && inGap) {
      let node = 0;
      // With one letter of the last pair of equal ones, as a disguise; 0 where there is none or no word goes on so.
      let single = 0;
      let letter = -1;
      let end = at;
      for (; end < to; end += 1) {
        const next = plainLetters[text.charCodeAt(end)] ?? -1;
        if (next < 0) break;
        if (next === letter) {
          if (single !== 0) break;
          single = node;
        } else if (single !== 0) {
          single = children[single * ALPHABET_SIZE + next] ?? 0;
          if (begun === undefined && opens[single] === 0) single = 0;
        }
        letter = next;
        node = children[node * ALPHABET_SIZE + letter] ?? 0;
        if (begun === undefined && opens[node] === 0) node = 0;
        if (node === 0 && single === 0) break;
      }
      if (node === 0 && single === 0) begun = undefined;
      else {
        if (single !== 0 || !endsWord(unitKinds, text, at, end)) break;
        const word = wordAt[node] ?? -1;
        if (word >= 0) {
          if (begun !== undefined && phrases.follow(begun, word) !== undefined) break;
          begun = phrases.follow(phrases.start(opensSentence), word);
          if (begun !== undefined) {
            begunAt = at;
            opensBegun = opensSentence;
            newlinesBegun = newlines;
            markBegun = lastMark;
            if (begun.skips || begun.ends.length > 0) break;
            if (!begun.open) begun = undefined;
          }
        } else begun = undefined;
      }
      at = end;
      inGap = false;
      opensSentence = false;
      newlines = 0;
      lastMark = NO_GAP;
    } else if (kind === PLAIN || kind === LETTER) {
      // Letters mean nothing before the next gap.
      if (inGap) break;
      at += 1;
    } else if (kind === NOTHING) {
      at += 1;
    } else {
      if (kind === UNKNOWN || (kind >= READABLE && inGap && !standsAlone(unitKinds, text, at))) break;
      const gap = (kind & (READABLE - 1)) - GAPS;
      inGap = true;
      at += 1;
      if (gap !== SPACE_GAP && gap !== NEWLINE_GAP) {
        if (gap !== SOFT_GAP) lastMark = gap;
        continue;
      }
      if (gap === NEWLINE_GAP) newlines += 1;
      if (lastMark === COLON_GAP) opensSentence = true;
      if (lastMark === STOP_GAP || newlines > 1) {
        opensSentence = true;
        begun = undefined;
      }
    }
  }
  if (begun !== undefined) {
    at = begunAt;
    [inGap, opensSentence, newlines, lastMark] = [true, opensBegun, newlinesBegun, markBegun];
  }
  place.inGap = inGap;
  place.opensSentence = opensSentence;
  place.newlines = newlines;
  place.lastMark = lastMark;
  return at - from;
}

/** Whether a word of plain letters is over for good: some go on behind a dot, and single letters behind a space. */
function endsWord(kinds: Uint8Array, text: string, start: number, end: number): boolean {
  if (end + 2 >= text.length) return false;
  const kind = kindAt(kinds, text, end);
  if (end - start === 1) return isSpace(kind) && isPlainWord(kinds, text, end + 1);
  return isSpace(kind) || (kind >= GAPS && kind < READABLE && isSpace(kindAt(kinds, text, end + 1)));
}

/** A symbol that may be a letter, with spaces on both sides. No ASCII symbol is a word, as it is a letter by guess only. */
function standsAlone(kinds: Uint8Array, text: string, at: number): boolean {
  return (
    at + 3 < text.length &&
    text.charCodeAt(at) < 0x80 &&
    isSpace(kindAt(kinds, text, at + 1)) &&
    isPlainWord(kinds, text, at + 2)
  );
}

/** Two letters side by side: neither belongs to a word of single letters. */
function isPlainWord(kinds: Uint8Array, text: string, at: number): boolean {
  return kindAt(kinds, text, at) === PLAIN && kindAt(kinds, text, at + 1) === PLAIN;
}

function kindAt(kinds: Uint8Array, text: string, at: number): number {
  return kinds[text.charCodeAt(at)] ?? UNKNOWN;
}

function isSpace(kind: number): boolean {
  return kind === GAPS + SPACE_GAP || kind === GAPS + NEWLINE_GAP;
}
