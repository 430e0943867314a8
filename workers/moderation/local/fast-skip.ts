import { ALPHABET_SIZE, COLON_GAP, NEWLINE_GAP, NO_GAP, SOFT_GAP, STOP_GAP } from './characters.ts';
import { GAPS, LETTER, NOTHING, READABLE } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { MAY_END, NONE_OPEN } from './open-phrases.ts';
import { matchToken } from './match-token.ts';
import type { PassedToken } from './match-token.ts';
import { endsWord, isWhiteSpace, kindAt, standsAlone } from './word-ends.ts';

/** The scanner's place in a text. docs/architecture/moderation.md explains the words that are used here. */
export interface TextPlace {
  /** A word may begin here: the last character was a gap, or this is the beginning of the text. */
  inGap: boolean;
  /** The next word is the first of a sentence. */
  opensSentence: boolean;
  /** Line breaks since the last letter; two end a sentence. */
  newlines: number;
  /** The last stop or colon since the last letter; NO_GAP: there is none. */
  lastMark: number;
  /** Up to this unit, a token was looked at and left to the scanner; it must not be looked at again. */
  lookedTo: number;
  /** Phrases that begin before this unit were followed and left to the scanner; they must not be followed again. */
  triedTo: number;
}

/** Holds what the last call of `passWord` or `passOther` passed over: one object, since each result is read at once. */
const passed: PassedToken = { end: 0, lookedTo: 0, inGap: false, words: 0, mark: NO_GAP };

/**
 * Passes fast over characters in which no phrase is completed. May be called while the scanner has no phrase open and
 * is not within a word. Stops before text it cannot judge; if phrases are open there, or one may end, before their
 * first word, so that the scanner reads them from the beginning. Returns the number of characters passed, and updates
 * `place` exactly as the scanner would have.
 */
export function skipFast(lexicon: Lexicon, place: TextPlace, units: Uint16Array, from: number, to: number): number {
  const { unitKinds } = lexicon;
  let { inGap, opensSentence, newlines, lastMark } = place;
  let state = NONE_OPEN;
  // Where the first of the open phrases begins, and the place before it: skimming returns there if one may end.
  let begunAt = from;
  let before = { opensSentence, newlines, lastMark };
  let at = from;
  while (at < to) {
    const kind = kindAt(unitKinds, units, at);
    if (kind === NOTHING || (kind <= LETTER && !inGap)) {
      // Within a word that is in no phrase, letters change nothing.
      at += 1;
    } else if (kind < GAPS || (kind >= GAPS + READABLE && inGap && !standsAlone(unitKinds, units, at))) {
      const next =
        kind < ALPHABET_SIZE
          ? passWord(lexicon, place, units, at, to, state, opensSentence)
          : passOther(lexicon, place, units, at, to, state);
      if (next === MAY_END || (state === NONE_OPEN && next !== NONE_OPEN && at < place.triedTo)) break;
      if (state === NONE_OPEN && next !== NONE_OPEN) {
        begunAt = at;
        before = { opensSentence, newlines, lastMark };
      }
      state = next;
      at = passed.end;
      inGap = passed.inGap;
      if (passed.words > 0) {
        opensSentence = false;
        newlines = 0;
      }
      if (passed.words > 0 || passed.mark !== NO_GAP) lastMark = passed.mark;
    } else {
      const gap = (kind & ~READABLE) - GAPS;
      inGap = true;
      at += 1;
      if (!isWhiteSpace(kind)) {
        if (gap !== SOFT_GAP) lastMark = gap;
        continue;
      }
      if (gap === NEWLINE_GAP) newlines += 1;
      if (lastMark === COLON_GAP) opensSentence = true;
      if (lastMark === STOP_GAP || newlines > 1) {
        opensSentence = true;
        state = NONE_OPEN;
      }
    }
  }
  if (state === NONE_OPEN) {
    Object.assign(place, { inGap, opensSentence, newlines, lastMark });
    return at - from;
  }
  place.triedTo = at;
  Object.assign(place, before, { inGap: true });
  return begunAt - from;
}

/** Passes over a word of plain letters. Returns the state after it; MAY_END: the scanner has to read the word. */
function passWord(
  lexicon: Lexicon,
  place: TextPlace,
  units: Uint16Array,
  at: number,
  to: number,
  state: number,
  opensSentence: boolean,
): number {
  const { unitKinds, trie } = lexicon;
  const table = state === NONE_OPEN ? trie.openings : trie.children;
  let end = at;
  let node = 0;
  // The node if a doubled letter is read as one, as in «kiill»; 0: no letter was doubled, or no word continues so.
  let single = 0;
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
  let word = -1;
  if (node !== 0 || single !== 0) {
    const isDisguised = single !== 0 && ((trie.wordAt[single] ?? 0) >= 0 || trie.firsts[single] === 1);
    if (isDisguised || !endsWord(unitKinds, units, at, end)) return passOther(lexicon, place, units, at, to, state);
    word = trie.wordAt[node] ?? -1;
  }
  while (end < to && kindAt(unitKinds, units, end) <= LETTER) end += 1;
  passed.end = end;
  passed.inGap = false;
  passed.words = 1;
  passed.mark = NO_GAP;
  return state === NONE_OPEN && trie.opensHere[node] !== 1
    ? NONE_OPEN
    : lexicon.openPhrases.step(state, word, opensSentence);
}

/** Passes over a token of any characters. Returns the state after it; MAY_END: the scanner has to read the token. */
function passOther(
  lexicon: Lexicon,
  place: TextPlace,
  units: Uint16Array,
  at: number,
  to: number,
  before: number,
): number {
  // A very long token would otherwise be looked at again for each of its characters.
  if (at < place.lookedTo) return MAY_END;
  if (!matchToken(lexicon, units, at, to, before !== NONE_OPEN, passed)) {
    place.lookedTo = passed.lookedTo;
    if (passed.end === at) return MAY_END;
  }
  let state = before;
  for (let left = passed.words; left > 0 && state > NONE_OPEN; left -= 1)
    state = lexicon.openPhrases.step(state, -1, false);
  return state;
}
