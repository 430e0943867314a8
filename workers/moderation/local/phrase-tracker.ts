import type { PhraseGroup } from './lexicon.ts';
import type { PhraseEnd, PhraseGraph, PhraseStep } from './phrase-graph.ts';

/** A phrase that has begun. Positions count UTF-16 units from the beginning of the text. */
export interface PhraseThread {
  readonly state: number;
  readonly skips: number;
  readonly start: number;
  readonly disguised: boolean;
  /** Set on a complete phrase that still depends on the word after it. */
  readonly end: PhraseEnd<PhraseGroup> | undefined;
}

/** A word that was read: where it began, and the phrases that it may continue. */
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
const NO_STEPS: readonly PhraseStep[] = [];

/** No text that means anything has so many phrases open at once; a made-up one may not cost more. */
const THREADS_MAX = 48;

/** Follows the phrases of a graph from word to word. It is told of every word and every gap between words, in order. */
export class PhraseTracker {
  /** Phrases whose next word may begin here. */
  waiting: readonly PhraseThread[] = NONE;
  private readonly graph: PhraseGraph<PhraseGroup>;
  private readonly onMatch: (match: PhraseMatch) => void;
  /** Phrases that live on if the word being read is one that they may skip. */
  private passing: readonly PhraseThread[] = NONE;
  private fresh: PhraseThread[] = [];
  private found: Found[] = [];
  /** Complete phrases that the word being read takes back. */
  private takenBack: PhraseThread[] = [];

  constructor(graph: PhraseGraph<PhraseGroup>, onMatch: (match: PhraseMatch) => void) {
    this.graph = graph;
    this.onMatch = onMatch;
  }

  /** A word of the vocabulary ends at this gap. Several may: a text can be read in more than one way. */
  read(word: number, reading: WordReading): void {
    const { graph } = this;
    this.follow(graph.anywhere.get(word), reading.start, reading.disguised);
    if (reading.opensSentence) this.follow(graph.atSentenceStart.get(word), reading.start, reading.disguised);
    for (const thread of reading.context) {
      if (thread.end === undefined) {
        this.follow(graph.next[thread.state]?.get(word), thread.start, thread.disguised || reading.disguised);
      } else if (thread.end.unlessNext?.has(word) === true) {
        this.takenBack.push(thread);
      }
    }
  }

  /** A letter begins a word after a gap. */
  beginWord(): void {
    if (this.waiting.length === 0) return;
    this.passing = this.waiting
      .filter((thread) => thread.skips > 0 || thread.end !== undefined)
      .map((thread) => (thread.end === undefined ? { ...thread, skips: thread.skips - 1 } : thread));
    this.waiting = NONE;
  }

  /** The words that end at this gap have all been read. */
  endWord(): void {
    if (this.found.length > 0) this.settleFound();
    for (const thread of this.passing) {
      if (thread.end === undefined) this.fresh.push(thread);
      else if (!this.takenBack.includes(thread)) this.report(thread.end, thread);
    }
    this.passing = NONE;
    this.takenBack = [];
    if (this.fresh.length === 0) return;
    this.waiting = this.waiting.length === 0 ? this.fresh : [...this.waiting, ...this.fresh];
    if (this.waiting.length > THREADS_MAX) this.waiting = this.waiting.slice(-THREADS_MAX);
    this.fresh = [];
  }

  /** No phrase goes on behind the end of a sentence. */
  endSentence(): void {
    for (const thread of this.waiting) if (thread.end !== undefined) this.report(thread.end, thread);
    this.waiting = NONE;
  }

  /** Where the oldest phrase begins that may still be completed. */
  heldFrom(): number {
    return Math.min(earliestStart(this.waiting), earliestStart(this.passing));
  }

  private follow(steps: readonly PhraseStep[] | undefined, start: number, disguised: boolean): void {
    for (const { state, skips } of steps ?? NO_STEPS) {
      for (const end of this.graph.ends[state] ?? []) this.found.push({ end, start, disguised });
      if ((this.graph.next[state]?.size ?? 0) > 0) this.open({ state, skips, start, disguised, end: undefined });
    }
  }

  /** Of two phrases in the same place the shorter one serves: it holds back less. */
  private open(thread: PhraseThread): void {
    const same = this.fresh.findIndex(
      ({ state, skips, end }) => state === thread.state && skips === thread.skips && !end,
    );
    const known = this.fresh[same];
    if (known === undefined) this.fresh.push(thread);
    else if (known.start < thread.start) this.fresh[same] = thread;
  }

  private settleFound(): void {
    const harmlessFrom = earliestStart(this.found.filter(({ end }) => end.label.categories.length === 0));
    for (const { end, start, disguised } of this.found) {
      if (start >= harmlessFrom) continue;
      if (end.unlessNext === undefined) this.report(end, { start, disguised });
      else this.fresh.push({ state: -1, skips: 0, start, disguised, end });
    }
    this.found = [];
  }

  private report({ label }: PhraseEnd<PhraseGroup>, { start, disguised }: { start: number; disguised: boolean }): void {
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
