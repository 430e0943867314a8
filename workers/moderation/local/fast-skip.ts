import { ALPHABET_SIZE, COLON_GAP, NEWLINE_GAP, NO_GAP, SOFT_GAP, STOP_GAP } from './characters.ts';
import { TOKEN_WORDS_MAX } from './classify-token.ts';
import { COMPLEX, KnownTokens, markOf, OPENS, SINGLE, wordsIn } from './known-tokens.ts';
import { GAPS, LETTER, NOTHING, READABLE } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { MAY_END, NONE_OPEN, OpenPhrases } from './open-phrases.ts';
import { matchToken } from './match-token.ts';
import type { PassedToken } from './match-token.ts';
import { endsAtGap, endsWord, isPlainWordBehind, isWhiteSpace, kindAt, standsAlone } from './word-ends.ts';

/** Where reading stands in a text. docs/architecture/moderation.md explains the words that are used here. */
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

/** The largest learning budget (`allowLearning`), in characters: 400 tokens and 400 steps at FOUND_OUT each. */
const BUDGET_MAX = 16_000;

/**
 * What the last call of `passWord` or `passOther` passed over; one object for all, since each result is read at once.
 */
const passed: PassedToken = { end: 0, lookedTo: 0, inGap: false, words: 0, mark: NO_GAP };

/** The phrases that skimming has open, and the place before their first word, where it returns if one may end. */
interface Chain extends Pick<TextPlace, 'opensSentence' | 'newlines' | 'lastMark'> {
  /** A state of OpenPhrases. */
  state: number;
  begunAt: number;
}

/** The memory of skimming. It is kept from text to text. */
export interface Skimmer {
  readonly lexicon: Lexicon;
  readonly tokens: KnownTokens;
  readonly phrases: OpenPhrases;
  /** Used only within a call of `skipFast`. */
  readonly chain: Chain;
}

export function createSkimmer(lexicon: Lexicon, statesMax?: number): Skimmer {
  const chain = { state: NONE_OPEN, begunAt: 0, opensSentence: false, newlines: 0, lastMark: NO_GAP };
  const phrases = new OpenPhrases(lexicon.phrases, statesMax);
  const skimmer = { lexicon, tokens: new KnownTokens(lexicon), phrases, chain };
  allowLearning(skimmer, BUDGET_MAX);
  return skimmer;
}

const skimmers = new WeakMap<Lexicon, Skimmer>();

/** The skimmer shared by all texts that are read with this lexicon. */
export function skimmerOf(lexicon: Lexicon): Skimmer {
  const skimmer = skimmers.get(lexicon) ?? createSkimmer(lexicon);
  skimmers.set(lexicon, skimmer);
  return skimmer;
}

/**
 * Adds to the learning budgets, as this many characters are about to be read. Learning a token or a step costs more
 * than reading it, and text made up to be slow has nothing but new ones. Because the budget grows with the text,
 * learning cannot take much longer than reading.
 */
export function allowLearning({ tokens, phrases }: Skimmer, characters: number): void {
  tokens.budget = Math.min(BUDGET_MAX, tokens.budget + characters);
  phrases.budget = Math.min(BUDGET_MAX, phrases.budget + characters);
}

/**
 * The fast way through most text: passes over characters in which no phrase is completed. May be called while the
 * scanner has no phrase open and is not within a word. It follows the phrases that begin in the text only as far as
 * needed to know that none ends.
 *
 * Stops before text it cannot judge. If phrases are open there, or one may end, it stops before their first word
 * instead, so that the scanner reads them from the beginning. Returns the number of characters passed, and updates
 * `place` exactly as the scanner would have.
 */
export function skipFast(skimmer: Skimmer, place: TextPlace, units: Uint16Array, from: number, to: number): number {
  const { chain } = skimmer;
  chain.state = NONE_OPEN;
  let at = from;
  for (let next = from; next >= 0 && at < to;) {
    next = place.inGap ? skimTokens(skimmer, place, units, at, to) : at;
    if (next >= 0 && next < to) next = skimToken(skimmer, place, units, next, to);
    at = next < 0 ? ~next : next;
  }
  if (chain.state !== NONE_OPEN) {
    place.triedTo = at;
    at = chain.begunAt;
    place.inGap = true;
    place.opensSentence = chain.opensSentence;
    place.newlines = chain.newlines;
    place.lastMark = chain.lastMark;
  }
  return at - from;
}

/**
 * Passes over known tokens, each with the space or tab after it. Returns where the first unknown token begins, or the
 * complement of that (`~`, below 0) if skimming has to stop there because a phrase may end.
 */
function skimTokens(skimmer: Skimmer, place: TextPlace, units: Uint16Array, from: number, to: number): number {
  const { tokens, chain, lexicon } = skimmer;
  let { opensSentence, newlines, lastMark } = place;
  let { state } = chain;
  let at = from;
  let isStopped = false;
  while (at < to) {
    const token = tokens.find(units, at, to);
    if (token < 0) break;
    const noted = tokens.noted[token] ?? COMPLEX;
    const { end } = tokens;
    // A token that reaches `to` counts only if white space follows, which the next call reads.
    const isOver = end < to || (end < units.length && isWhiteSpace(kindAt(lexicon.unitKinds, units, end)));
    if ((noted & COMPLEX) !== 0 || !isOver) break;
    if ((noted & SINGLE) !== 0 && !isPlainWordBehind(lexicon.unitKinds, units, end)) break;
    if (state !== NONE_OPEN || (noted & OPENS) !== 0) {
      const next = stepAll(skimmer, state, token, opensSentence);
      isStopped = next === MAY_END || (state === NONE_OPEN && next !== NONE_OPEN && at < place.triedTo);
      if (isStopped) break;
      if (state === NONE_OPEN) begin(chain, at, opensSentence, newlines, lastMark);
      state = next;
    }
    const mark = markOf(noted);
    if (wordsIn(noted) > 0) {
      opensSentence = false;
      newlines = 0;
      lastMark = mark;
    } else if (mark !== NO_GAP) lastMark = mark;
    // The white space after a stop ends the sentence, and with it all open phrases.
    if (lastMark === STOP_GAP) state = NONE_OPEN;
    at = end;
    if (end === to) break;
    at += 1;
    opensSentence ||= lastMark === COLON_GAP || lastMark === STOP_GAP;
  }
  chain.state = state;
  place.opensSentence = opensSentence;
  place.newlines = newlines;
  place.lastMark = lastMark;
  return isStopped ? ~at : at;
}

function begin(chain: Chain, at: number, opensSentence: boolean, newlines: number, lastMark: number): void {
  chain.begunAt = at;
  chain.opensSentence = opensSentence;
  chain.newlines = newlines;
  chain.lastMark = lastMark;
}

/** The state after the words of a known token. MAY_END: a phrase may end with one of them. */
function stepAll({ tokens, phrases }: Skimmer, before: number, token: number, opensSentence: boolean): number {
  const count = wordsIn(tokens.noted[token] ?? 0);
  let state = before;
  for (let index = 0; index < count && state !== MAY_END; index += 1) {
    const word = tokens.words[token * TOKEN_WORDS_MAX + index] ?? -1;
    state = phrases.step(state, word, opensSentence && index === 0);
  }
  return state;
}

/**
 * Passes over one unknown token and the white space after it. Returns the place reached, or its complement (`~`, below
 * 0) if skimming has to stop there.
 */
function skimToken(skimmer: Skimmer, place: TextPlace, units: Uint16Array, from: number, to: number): number {
  const { lexicon, chain } = skimmer;
  const { unitKinds } = lexicon;
  let { inGap, opensSentence, newlines, lastMark } = place;
  let { state } = chain;
  let at = from;
  let isOver = false;
  let isStopped = false;
  while (at < to && !isOver) {
    const kind = kindAt(unitKinds, units, at);
    if (kind === NOTHING || (kind <= LETTER && !inGap)) {
      // Within a word that is in no phrase, letters change nothing.
      at += 1;
    } else if (kind < GAPS || (kind >= GAPS + READABLE && inGap && !standsAlone(unitKinds, units, at))) {
      const isWord = kind < ALPHABET_SIZE;
      const next = isWord
        ? passWord(skimmer, place, units, at, to, state, opensSentence)
        : passOther(skimmer, place, units, at, to, state);
      isStopped = next === MAY_END || (state === NONE_OPEN && next !== NONE_OPEN && at < place.triedTo);
      if (isStopped) break;
      if (state === NONE_OPEN) begin(chain, at, opensSentence, newlines, lastMark);
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
      isOver = at === to || !isWhiteSpace(kindAt(unitKinds, units, at));
      if (gap === NEWLINE_GAP) newlines += 1;
      if (lastMark === COLON_GAP) opensSentence = true;
      if (lastMark === STOP_GAP || newlines > 1) {
        opensSentence = true;
        state = NONE_OPEN;
      }
    }
  }
  chain.state = state;
  place.inGap = inGap;
  place.opensSentence = opensSentence;
  place.newlines = newlines;
  place.lastMark = lastMark;
  return isStopped ? ~at : at;
}

/** Passes over a word of plain letters. Returns the state after it; MAY_END: the scanner has to read the word. */
function passWord(
  skimmer: Skimmer,
  place: TextPlace,
  units: Uint16Array,
  at: number,
  to: number,
  state: number,
  opensSentence: boolean,
): number {
  const { unitKinds, trie } = skimmer.lexicon;
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
    const isOver =
      endsWord(unitKinds, units, at, end) || (end > at + 1 && endsAtGap(unitKinds, table, node, single, units, end));
    if (isDisguised || !isOver) return passOther(skimmer, place, units, at, to, state);
    word = trie.wordAt[node] ?? -1;
  }
  // The rest of a word that is in no phrase.
  while (end < to && kindAt(unitKinds, units, end) <= LETTER) end += 1;
  passed.end = end;
  passed.inGap = false;
  passed.words = 1;
  passed.mark = NO_GAP;
  return state === NONE_OPEN && trie.opensHere[node] !== 1
    ? NONE_OPEN
    : skimmer.phrases.step(state, word, opensSentence);
}

/** Passes over a token of any characters. Returns the state after it; MAY_END: the scanner has to read the token. */
function passOther(
  { lexicon, phrases }: Skimmer,
  place: TextPlace,
  units: Uint16Array,
  at: number,
  to: number,
  before: number,
): number {
  // Each character is looked at only once, or a very long token would be looked at again for each of its characters.
  if (at < place.lookedTo) return MAY_END;
  if (!matchToken(lexicon, units, at, to, before !== NONE_OPEN, passed)) {
    place.lookedTo = passed.lookedTo;
    if (passed.end === at) return MAY_END;
  }
  let state = before;
  for (let left = passed.words; left > 0 && state > NONE_OPEN; left -= 1) state = phrases.step(state, -1, false);
  return state;
}
