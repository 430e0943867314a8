import type { PhraseGroup } from './phrase-lists.ts';
import type { PhraseSet, PhraseSets } from './phrase-sets.ts';

type Places = readonly PhraseSet<PhraseGroup>[];

export const NONE_OPEN = 0;
/** A phrase may end with this word, or more phrases are open than are followed here. */
export const MAY_END = -1;
/** Stands for any word that is in no phrase. */
const NO_WORD = 0xffff;

/** Ordinary texts have one to three phrases open at once, and need some hundreds of states. */
const PLACES_MAX = 8;
const STATES_MAX = 2_048;
const STEPS = 32_768;
const STEPS_MAX = STEPS / 2;
const PRIME = 0x9e37_79b1;
/** The price of learning a step, in characters read, and the largest budget for it: 400 steps. */
const STEP_COST = 40;
const BUDGET_MAX = 400 * STEP_COST;

/**
 * Knows which phrases are open after a row of plain words, without positions: enough to know that none ends. This is a
 * finite automaton, built as texts need it: states are sets of open phrases, at least all that a PhraseTracker would
 * have open, and `step` is the transition by a word.
 */
export class OpenPhrases {
  private budget = BUDGET_MAX;
  private readonly phrases: PhraseSets<PhraseGroup>;
  private states: Places[] = [[]];
  private stateOf = new Map<string, number>([['', NONE_OPEN]]);
  private numberOf = new Map<PhraseSet<PhraseGroup>, number>();
  /** A hash table of transitions: state, word and `opensSentence` in one number, plus one; and the next state. */
  private readonly asked = new Int32Array(STEPS);
  private readonly answers = new Int16Array(STEPS);
  private known = 0;

  private readonly statesMax: number;

  constructor(phrases: PhraseSets<PhraseGroup>, statesMax = STATES_MAX) {
    this.phrases = phrases;
    this.statesMax = statesMax;
  }

  /**
   * Adds to the learning budget for as many characters as are about to be read, so that learning takes little longer
   * than reading. A step costs more to learn than to read, and text made up to be slow has nothing but new ones.
   */
  allowLearning(characters: number): void {
    this.budget = Math.min(BUDGET_MAX, this.budget + characters);
  }

  /**
   * `word` below 0: a word that is in no phrase. After MAY_END the caller must stop and no longer use any earlier
   * state, because the automaton may have been cleared for lack of room.
   */
  step(state: number, word: number, opensSentence: boolean): number {
    const key = ((state << 18) | ((word & NO_WORD) << 2) | (opensSentence ? 2 : 0)) + 1;
    let at = Math.imul(key, PRIME) >>> 17;
    for (;;) {
      const asked = this.asked[at];
      if (asked === key) return this.answers[at] ?? MAY_END;
      if (asked === 0) break;
      at = (at + 1) & (STEPS - 1);
    }
    if (this.budget < STEP_COST) return MAY_END;
    this.budget -= STEP_COST;
    const next = this.find(this.states[state] ?? [], word, opensSentence);
    if (this.known >= STEPS_MAX || this.states.length >= this.statesMax) {
      this.forget();
      return MAY_END;
    }
    this.asked[at] = key;
    this.answers[at] = next;
    this.known += 1;
    return next;
  }

  private find(from: Places, word: number, opensSentence: boolean): number {
    const { phrases } = this;
    const places = new Set<PhraseSet<PhraseGroup>>();
    for (const each of word < 0 ? [] : [phrases.start(opensSentence), ...from]) {
      const place = phrases.follow(each, word);
      if (place === undefined) continue;
      if (place.ends.length > 0) return MAY_END;
      if (place.open) places.add(place);
    }
    for (const place of from) {
      const skipped = phrases.skip(place);
      if (skipped !== undefined) places.add(skipped);
    }
    return places.size > PLACES_MAX ? MAY_END : this.intern([...places]);
  }

  private intern(places: Places): number {
    const numbers = places.map((place) => {
      const number = this.numberOf.get(place) ?? this.numberOf.size;
      this.numberOf.set(place, number);
      return number;
    });
    const key = numbers.sort((one, other) => one - other).join();
    const known = this.stateOf.get(key) ?? this.states.push(places) - 1;
    this.stateOf.set(key, known);
    return known;
  }

  private forget(): void {
    this.states = [[]];
    this.stateOf = new Map([['', NONE_OPEN]]);
    this.numberOf = new Map();
    this.asked.fill(0);
    this.known = 0;
  }
}
