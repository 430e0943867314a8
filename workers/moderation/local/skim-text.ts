import { ALPHABET_SIZE, COLON_GAP, NEWLINE_GAP, NO_GAP, SOFT_GAP, STOP_GAP } from './characters.ts';
import { TOKEN_WORDS_MAX } from './classify-token.ts';
import { COMPLEX, KnownTokens, markOf, OPENS, SINGLE, wordsIn } from './known-tokens.ts';
import { GAPS, LETTER, NOTHING, READABLE } from './lexicon.ts';
import type { Lexicon } from './lexicon.ts';
import { MAY_END, NONE_OPEN, OpenPhrases } from './open-phrases.ts';
import { passToken } from './pass-token.ts';
import type { PassedToken } from './pass-token.ts';
import { endsAtGap, endsWord, isPlainWordBehind, isWhiteSpace, kindAt, standsAlone } from './word-ends.ts';

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
  /** Phrases that begin before this unit were followed in vain, and are read: they are not followed again. */
  triedTo: number;
}

/** In characters: so 400 tokens and 400 steps are found out at once, at most. */
const BUDGET_MAX = 16_000;

const passed: PassedToken = { end: 0, lookedTo: 0, inGap: false, words: 0, mark: NO_GAP };

/** Phrases that were begun while skimming, and the place in front of the first of their words. */
interface Chain extends Pick<TextPlace, 'opensSentence' | 'newlines' | 'lastMark'> {
  /** Of OpenPhrases. */
  state: number;
  begunAt: number;
}

/** What skimming keeps from text to text. */
export interface Skimmer {
  readonly lexicon: Lexicon;
  readonly tokens: KnownTokens;
  readonly phrases: OpenPhrases;
  /** Empty between two calls. */
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

/** One for all texts that are read by a lexicon. */
export function skimmerOf(lexicon: Lexicon): Skimmer {
  const skimmer = skimmers.get(lexicon) ?? createSkimmer(lexicon);
  skimmers.set(lexicon, skimmer);
  return skimmer;
}

/** So many characters are read next: made-up text may take no more time than what it costs to read it, line by line too. */
export function allowLearning({ tokens, phrases }: Skimmer, characters: number): void {
  tokens.budget = Math.min(BUDGET_MAX, tokens.budget + characters);
  phrases.budget = Math.min(BUDGET_MAX, phrases.budget + characters);
}

/**
 * Passes over text in which no phrase comes to its end, while none is open and no word is being read: most of any text.
 * Stops in front of what it does not know, and of the first word of a phrase that may end, or of one that is open where it
 * stops. Returns how many characters it has read and moves `place` on. Does nothing that reading them one by one would
 * not do.
 */
export function skimText(skimmer: Skimmer, place: TextPlace, units: Uint16Array, from: number, to: number): number {
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
 * Passes over known tokens, each with a space or a tab behind it. Returns where the first one begins that is none, as its own
 * complement where skimming stops.
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
    // Where a line ends the white space is read next.
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
    // With the white space behind it, which is read here or next.
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

/** What is open behind the words of a known token. MAY_END: a phrase may end with one of them. */
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
 * Passes over text as far as behind the next white space, in the way of skimText. Returns where it has come to, as its own
 * complement where it stops there.
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
      // Letters mean nothing before the next gap.
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

/** Passes over a word of plain letters. Returns what is open behind it; MAY_END: it has to be read. */
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
  // With one letter of the last pair of equal ones, as a disguise; 0 where there is none or no word goes on so.
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
  // Letters mean nothing before the next gap.
  while (end < to && kindAt(unitKinds, units, end) <= LETTER) end += 1;
  passed.end = end;
  passed.inGap = false;
  passed.words = 1;
  passed.mark = NO_GAP;
  return state === NONE_OPEN && trie.opensHere[node] !== 1
    ? NONE_OPEN
    : skimmer.phrases.step(state, word, opensSentence);
}

/** Passes over what stands between two spaces. Returns what is open behind it; MAY_END: it has to be read. */
function passOther(
  { lexicon, phrases }: Skimmer,
  place: TextPlace,
  units: Uint16Array,
  at: number,
  to: number,
  before: number,
): number {
  // Looks once at each character, whatever the text: a token without an end would cost the square of its length.
  if (at < place.lookedTo) return MAY_END;
  if (!passToken(lexicon, units, at, to, before !== NONE_OPEN, passed)) {
    place.lookedTo = passed.lookedTo;
    if (passed.end === at) return MAY_END;
  }
  let state = before;
  for (let left = passed.words; left > 0 && state > NONE_OPEN; left -= 1) state = phrases.step(state, -1, false);
  return state;
}
