import type { PhraseEnd, PhraseGraph, PhraseStep } from './phrase-graph.ts';

/** The phrases that the words so far may still become, as a set of places in the phrase graph. */
export interface PhraseSet<Label> {
  readonly steps: readonly PhraseStep[];
  /** The phrases completed by the word that led here. */
  readonly ends: readonly PhraseEnd<Label>[];
  /** False if nothing can follow. */
  readonly open: boolean;
  readonly skips: boolean;
  /** Computed so far: the sets that words lead to, and the results of merging this set with others. */
  readonly next: Map<number, PhraseSet<Label> | null>;
  readonly merged: Map<PhraseSet<Label>, PhraseSet<Label>>;
  skipped: PhraseSet<Label> | undefined;
}

/** Meaningful text needs some hundreds of sets; made-up text must not fill the memory. */
const SETS_MAX = 10_000;

/**
 * Turns the phrase graph into a deterministic one as far as texts need it: each word leads to one set, made on first
 * use and kept. A scan costs one map look-up per word, however many phrases begin alike.
 */
export class PhraseSets<Label> {
  private readonly graph: PhraseGraph<Label>;
  private readonly known = new Map<string, PhraseSet<Label>>();
  private anywhere: PhraseSet<Label>;
  private sentenceStart: PhraseSet<Label>;

  constructor(graph: PhraseGraph<Label>) {
    this.graph = graph;
    this.anywhere = this.startAt([graph.anywhere]);
    this.sentenceStart = this.startAt([graph.anywhere, graph.sentenceStart]);
  }

  start(opensSentence: boolean): PhraseSet<Label> {
    return opensSentence ? this.sentenceStart : this.anywhere;
  }

  /** The set after a word; undefined if no phrase continues with the word. */
  follow(from: PhraseSet<Label>, word: number): PhraseSet<Label> | undefined {
    const known = from.next.get(word);
    if (known !== undefined) return known ?? undefined;
    const found = this.intern(from.steps.flatMap(({ state }) => this.graph.steps(state).get(word) ?? []));
    from.next.set(word, found ?? null);
    return found;
  }

  skip(from: PhraseSet<Label>): PhraseSet<Label> | undefined {
    if (!from.skips) return undefined;
    const left = from.steps.filter(({ skips }) => skips > 0);
    from.skipped ??= this.intern(left.map(({ state, skips }) => ({ state, skips: skips - 1 })));
    return from.skipped;
  }

  /** One set for two that begin with the same word. */
  merge(one: PhraseSet<Label>, other: PhraseSet<Label>): PhraseSet<Label> {
    const known = one.merged.get(other);
    if (known !== undefined) return known;
    const merged = this.intern([...one.steps, ...other.steps]) ?? one;
    one.merged.set(other, merged);
    return merged;
  }

  private startAt(states: readonly number[]): PhraseSet<Label> {
    return this.create(states.map((state) => ({ state, skips: 0 })));
  }

  private intern(steps: readonly PhraseStep[]): PhraseSet<Label> | undefined {
    if (steps.length === 0) return undefined;
    const skipsOf = new Map<number, number>();
    for (const { state, skips } of steps) skipsOf.set(state, Math.max(skips, skipsOf.get(state) ?? 0));
    const places = [...skipsOf].sort(([one], [other]) => one - other);
    const key = places.join(' ');
    const known = this.known.get(key);
    if (known !== undefined) return known;
    if (this.known.size >= SETS_MAX) this.forget();
    const created = this.create(places.map(([state, skips]) => ({ state, skips })));
    this.known.set(key, created);
    return created;
  }

  private create(steps: readonly PhraseStep[]): PhraseSet<Label> {
    return {
      steps,
      ends: steps.flatMap(({ state }) => this.graph.ends(state)),
      open: steps.some(({ state }) => this.graph.steps(state).size > 0),
      skips: steps.some(({ skips }) => skips > 0),
      next: new Map(),
      merged: new Map(),
      skipped: undefined,
    };
  }

  /** Sets in use stay valid; they lead to newly made sets. */
  private forget(): void {
    this.known.clear();
    this.anywhere = this.startAt([this.graph.anywhere]);
    this.sentenceStart = this.startAt([this.graph.anywhere, this.graph.sentenceStart]);
  }
}
