import { ALPHABET_SIZE, COLON_GAP, NEWLINE_GAP, NO_GAP, SOFT_GAP, SPACE_GAP, STOP_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, READABLE, UNKNOWN } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { isPlainWordBehind, kindAt, passToken } from './pass-token.ts';
import type { PassedToken } from './pass-token.ts';
import type { PhraseGroup } from './phrase-lists.ts';
import type { PhraseSet } from './phrase-sets.ts';
import { threeLetters } from './word-trie.ts';

/** Where a text stands between its letters, words and sentences. */
export interface TextPlace {
  /** What comes stands behind a gap, or at the beginning of the text: a word may begin. */
  inGap: boolean;
  opensSentence: boolean;
  /** Since the last letter. */
  newlines: number;
  lastMark: number;
  /** A token was looked at as far as this unit of the text being read, and has to be read: it is not looked at again. */
  lookedTo: number;
}

const passed: PassedToken = { end: 0, inGap: false, hasLetter: false, mark: NO_GAP };

/**
 * Passes over text in which no phrase goes beyond its first word, while none is open and no word is being read: most of
 * any text. Stops in front of what may go further, of what it does not know, and of a first word that is the last one.
 * Returns how many characters it has read and moves `place` on. Does nothing that reading them one by one would not do;
 * it is one loop over tables, as that is what compilers make the most of.
 */
export function skimText(lexicon: Lexicon, place: TextPlace, units: Uint16Array, from: number, to: number): number {
  const { unitKinds, trie, phrases } = lexicon;
  const { children, openings, openingThrees, opensHere, wordAt } = trie;
  let { inGap, opensSentence, newlines, lastMark } = place;
  let at = from;
  /** What the last word has begun, and the place in front of that word. */
  let begun: PhraseSet<PhraseGroup> | undefined;
  let begunAt = from;
  let [opensBegun, newlinesBegun, markBegun] = [opensSentence, newlines, lastMark];

  while (at < to) {
    const kind = kindAt(unitKinds, units, at);
    if (kind <= LETTER && !inGap) {
      // Letters mean nothing before the next gap.
      at += 1;
    } else if (kind < ALPHABET_SIZE) {
      let end = at;
      let node = 0;
      // With one letter of the last pair of equal ones, as a disguise; 0 where there is none or no word goes on so.
      let single = 0;
      if (begun === undefined && at + 2 < to && beginsNothing(openingThrees, unitKinds, units, at, kind)) {
        end = at + 3;
      } else {
        const table = begun === undefined ? openings : children;
        let letter = -1;
        for (; end < to; end += 1) {
          const next = kindAt(unitKinds, units, end);
          if (next >= ALPHABET_SIZE) break;
          if (next === letter) {
            if (single !== 0) break;
            single = node;
          } else if (single !== 0) {
            single = table[single * ALPHABET_SIZE + next] ?? 0;
          }
          letter = next;
          node = table[node * ALPHABET_SIZE + letter] ?? 0;
          if (node === 0 && single === 0) break;
        }
      }
      if (node === 0 && single === 0) begun = undefined;
      else if (single !== 0 || !endsWord(unitKinds, units, at, end)) {
        if (begun !== undefined || !passes(lexicon, place, units, at, to)) break;
        at = passed.end;
        inGap = passed.inGap;
        opensSentence = false;
        newlines = 0;
        lastMark = passed.mark;
        continue;
      } else {
        const word = wordAt[node] ?? -1;
        if (word >= 0) {
          if (begun !== undefined && phrases.follow(begun, word) !== undefined) break;
          begun = opensHere[node] === 1 ? phrases.begin(opensSentence, word) : undefined;
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
      // Letters mean nothing before the next gap.
      while (end < to && kindAt(unitKinds, units, end) <= LETTER) end += 1;
      at = end;
      inGap = false;
      opensSentence = false;
      newlines = 0;
      lastMark = NO_GAP;
    } else if (kind === NOTHING) {
      at += 1;
    } else if (
      kind === LETTER ||
      kind === UNKNOWN ||
      (kind >= GAPS + READABLE && inGap && !standsAlone(unitKinds, units, at))
    ) {
      if (kind === UNKNOWN || begun !== undefined || !passes(lexicon, place, units, at, to)) break;
      at = passed.end;
      inGap = passed.inGap;
      if (passed.hasLetter) {
        opensSentence = false;
        newlines = 0;
      }
      if (passed.hasLetter || passed.mark !== NO_GAP) lastMark = passed.mark;
    } else {
      const gap = (kind & ~READABLE) - GAPS;
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

/** Looks once at each character, whatever the text: a token without an end would cost the square of its length. */
function passes(lexicon: Lexicon, place: TextPlace, units: Uint16Array, at: number, to: number): boolean {
  if (at < place.lookedTo) return false;
  const isPassed = passToken(lexicon, units, at, to, passed);
  if (!isPassed) place.lookedTo = passed.end;
  return isPassed;
}

/** Whether three plain letters, none like its neighbour, say that no phrase begins with their word. */
function beginsNothing(threes: Uint8Array, kinds: Uint8Array, units: Uint16Array, at: number, first: number): boolean {
  const second = kindAt(kinds, units, at + 1);
  const third = kindAt(kinds, units, at + 2);
  if (second >= ALPHABET_SIZE || third >= ALPHABET_SIZE || first === second || second === third) return false;
  return threes[threeLetters(first, second, third)] === 0;
}

/** Whether a word of plain letters is over for good: some go on behind a dot, and single letters behind a space. */
function endsWord(kinds: Uint8Array, units: Uint16Array, start: number, end: number): boolean {
  if (end + 2 >= units.length) return false;
  const kind = kindAt(kinds, units, end);
  if (end - start === 1) return isSpace(kind) && isPlainWordBehind(kinds, units, end);
  return isSpace(kind) || (kind >= GAPS && kind < GAPS + READABLE && isSpace(kindAt(kinds, units, end + 1)));
}

/** A symbol that may be a letter, with spaces on both sides. No ASCII symbol is a word, as it is a letter by guess only. */
function standsAlone(kinds: Uint8Array, units: Uint16Array, at: number): boolean {
  return (
    at + 3 < units.length &&
    (units[at] ?? 0) < 0x80 &&
    isSpace(kindAt(kinds, units, at + 1)) &&
    isPlainWordBehind(kinds, units, at + 1)
  );
}

function isSpace(kind: number): boolean {
  return kind === GAPS + SPACE_GAP || kind === GAPS + NEWLINE_GAP;
}
