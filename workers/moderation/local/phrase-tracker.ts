import type { PhraseGroup } from './phrase-lists.ts';
import type { PhraseEnd } from './phrase-graph.ts';
import type { PhraseSet, PhraseSets } from './phrase-sets.ts';

/** Phrases that have begun with one word. Positions count UTF-16 units from the beginning of the text. */
export interface PhraseThread {
  readonly start: number;
  readonly disguised: boolean;
  /** The words that may follow; undefined for a complete phrase that still depends on the word after it. */
  readonly set: PhraseSet<PhraseGroup> | undefined;
  readonly end: PhraseEnd<PhraseGroup> | undefined;
}

export interface WordReading {
  readonly start: number;
  readonly opensSentence: boolean;
  readonly disguised: boolean;
  readonly context: readonly PhraseThread[];
}

export interface PhraseMatch {
  readonly group: PhraseGroup;
  readonly start: number;
  readonly score: number;
}

interface Found {
  readonly end: PhraseEnd<PhraseGroup>;
  readonly start: number;
  readonly disguised: boolean;
}

const NONE: readonly PhraseThread[] = [];

/** No meaningful text has this many phrases open at once; made-up text must not cost more. */
const THREADS_MAX = 16;

/** Follows phrases from word to word. Its owner passes it every word and every gap between words, in order. */
export class PhraseTracker {
  /** Phrases whose next word may begin here. */
  waiting: readonly PhraseThread[] = NONE;
  private readonly phrases: PhraseSets<PhraseGroup>;
  private readonly onMatch: (match: PhraseMatch) => void;
  /** Phrases that stay open if they may skip the word being read. */
  private passing: readonly PhraseThread[] = NONE;
  private fresh: PhraseThread[] = [];
  private found: Found[] = [];
  /** Complete phrases that the word being read cancels. */
  private takenBack: PhraseThread[] = [];

  constructor(phrases: PhraseSets<PhraseGroup>, onMatch: (match: PhraseMatch) => void) {
    this.phrases = phrases;
    this.onMatch = onMatch;
  }

  /** No phrase is open, so gaps, and words that begin no phrase, change nothing. */
  get quiet(): boolean {
    return this.waiting.length === 0 && this.passing.length === 0;
  }

  /** A word of the vocabulary ends at this gap. Several may: a text can be read in more than one way. */
  read(word: number, reading: WordReading): void {
    this.follow(this.phrases.start(reading.opensSentence), word, reading.start, reading.disguised);
    for (const thread of reading.context) {
      const { set, end, start, disguised } = thread;
      if (set !== undefined) this.follow(set, word, start, disguised || reading.disguised);
      else if (end?.unlessNext?.has(word) === true) this.takenBack.push(thread);
    }
  }

  /** A letter begins a word after a gap. */
  beginWord(): void {
    const { waiting } = this;
    if (waiting.length === 0) return;
    const mayPass = waiting.every(({ set }) => set?.skips !== false);
    this.passing = mayPass ? waiting : waiting.filter(({ set }) => set?.skips !== false);
    this.waiting = NONE;
  }

  /** The words that end at this gap have all been read. */
  endWord(): void {
    if (this.found.length > 0) this.settleFound();
    if (this.passing.length > 0) this.endPassing();
    if (this.fresh.length === 0) return;
    this.waiting = this.waiting.length === 0 ? this.fresh : [...this.waiting, ...this.fresh];
    if (this.waiting.length > THREADS_MAX) this.waiting = this.waiting.slice(-THREADS_MAX);
    this.fresh = [];
  }

  /** The end of a sentence ends every phrase. */
  endSentence(): void {
    for (const thread of this.waiting) if (thread.end !== undefined) this.report(thread.end, thread);
    this.waiting = NONE;
  }

  /** The earliest phrase that may still be completed begins here. */
  heldFrom(): number {
    return Math.min(earliestStart(this.waiting), earliestStart(this.passing));
  }

  private follow(from: PhraseSet<PhraseGroup>, word: number, start: number, disguised: boolean): void {
    const set = this.phrases.follow(from, word);
    if (set === undefined) return;
    for (const end of set.ends) this.found.push({ end, start, disguised });
    if (!set.open) return;
    this.open(set, start, disguised);
  }

  /** Phrases begun by the same word continue as one; of two in the same set, the later is kept and holds back less. */
  private open(set: PhraseSet<PhraseGroup>, start: number, disguised: boolean): void {
    let index = 0;
    let known = this.fresh[index];
    while (known !== undefined && known.set !== set && (known.start !== start || known.set === undefined))
      known = this.fresh[(index += 1)];
    if (known?.set === undefined) {
      this.fresh.push({ set, start, disguised, end: undefined });
    } else if (known.start === start) {
      const merged = known.set === set ? set : this.phrases.merge(known.set, set);
      // If one of two readings is plain, nothing was hidden.
      this.fresh[index] = { set: merged, start, disguised: known.disguised && disguised, end: undefined };
    } else if (known.start < start) {
      this.fresh[index] = { set, start, disguised, end: undefined };
    }
  }

  /** The passing phrases did not use this word: it belonged to no phrase, or to another one. */
  private endPassing(): void {
    for (const thread of this.passing) {
      const { set, end, start, disguised } = thread;
      if (set !== undefined) {
        const skipped = this.phrases.skip(set);
        if (skipped !== undefined) this.open(skipped, start, disguised);
      } else if (end !== undefined && !this.takenBack.includes(thread)) {
        this.report(end, thread);
      }
    }
    this.passing = NONE;
    this.takenBack = [];
  }

  private settleFound(): void {
    const harmlessFrom = earliestStart(this.found.filter(({ end }) => end.label.categories.length === 0));
    for (const { end, start, disguised } of this.found) {
      if (start >= harmlessFrom) continue;
      if (end.unlessNext === undefined) this.report(end, { start, disguised });
      else this.fresh.push({ set: undefined, start, disguised, end });
    }
    this.found = [];
  }

  private report(
    { label }: PhraseEnd<PhraseGroup>,
    { start, disguised }: Pick<PhraseThread, 'start' | 'disguised'>,
  ): void {
    const score = disguised ? (label.disguisedScore ?? label.score) : label.score;
    this.onMatch({ group: label, start, score });
  }
}

/** Infinity when there is none. */
export function earliestStart(threads: readonly { readonly start: number }[]): number {
  let earliest = Infinity;
  for (const { start } of threads) if (start < earliest) earliest = start;
  return earliest;
}
