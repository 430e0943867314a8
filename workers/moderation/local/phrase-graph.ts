import type { Phrase, PhraseElement } from './phrase-syntax.ts';

/** Where a phrase continues after a word: a state, and how many words may be skipped before the next word. */
export interface PhraseStep {
  readonly state: number;
  readonly skips: number;
}

/** The end of a phrase; the phrase counts unless one of these words comes next. */
export interface PhraseEnd<Label> {
  readonly label: Label;
  readonly unlessNext: ReadonlySet<number> | undefined;
}

/** The way from one state to another. */
interface Edge {
  readonly to: number;
  /** The word that leads there, or how many words may be skipped. */
  readonly kind: 'word' | 'skip' | 'empty';
  readonly value: number;
}

type Steps = ReadonlyMap<number, readonly PhraseStep[]>;

/** All phrases as one automaton over words. Phrases that begin with the same elements share their states. */
export class PhraseGraph<Label> {
  /** The vocabulary; a word's index is its place here. */
  readonly words: string[] = [];
  private readonly wordIndex = new Map<string, number>();
  private states = 0;
  /** The state after an element, by the state before it and the element's source. */
  private readonly shared = new Map<string, number>();
  /** By state. Nearly all of the 18,000 states have one edge, so most share their array with no one. */
  private readonly edges: Edge[][] = [];
  private readonly endsOf = new Map<number, PhraseEnd<Label>[]>();
  private readonly stepsOf: (Steps | undefined)[] = [];
  /** Where phrases begin that may stand anywhere, and where those begin that may only open a sentence. */
  readonly anywhere = this.addState();
  readonly sentenceStart = this.addState();

  add(phrase: Phrase, label: Label): void {
    const from = phrase.atSentenceStart ? this.sentenceStart : this.anywhere;
    const last = phrase.elements.reduce((at, element) => this.addElement(at, element), from);
    const unlessNext = new Set(phrase.unlessNext.map((word) => this.indexOf(word)));
    const ends = this.endsOf.get(last) ?? [];
    ends.push({ label, unlessNext: unlessNext.size > 0 ? unlessNext : undefined });
    this.endsOf.set(last, ends);
  }

  /** All phrases have been added: frees what only adding needs. */
  close(): void {
    this.shared.clear();
    this.wordIndex.clear();
  }

  /** Where each word leads from a state. */
  steps(state: number): Steps {
    const known = this.stepsOf[state];
    if (known !== undefined) return known;
    const only = this.onlyWay(state);
    const steps = only === state ? this.findSteps(state) : this.steps(only);
    this.stepsOf[state] = steps;
    return steps;
  }

  /** The phrases that are complete in a state. */
  ends(state: number): readonly PhraseEnd<Label>[] {
    return [...this.reach(state)].flatMap((reached) => this.endsOf.get(reached) ?? []);
  }

  private addState(): number {
    this.states += 1;
    return this.states - 1;
  }

  private indexOf(word: string): number {
    const known = this.wordIndex.get(word) ?? this.words.push(word) - 1;
    this.wordIndex.set(word, known);
    return known;
  }

  private addElement(from: number, element: PhraseElement): number {
    const key = `${from} ${element.source}`;
    const known = this.shared.get(key);
    if (known !== undefined) return known;
    const to = this.addState();
    this.shared.set(key, to);
    switch (element.kind) {
      case 'word':
        this.addEdge(from, 'word', to, this.indexOf(element.word));
        break;
      case 'skip':
        this.addEdge(from, 'skip', to, element.words);
        break;
      case 'oneOf':
        for (const row of element.alternatives) {
          const last = row.reduce((at, inner) => this.addElement(at, inner), from);
          this.addEdge(last, 'empty', to);
        }
        if (element.optional) this.addEdge(from, 'empty', to);
        break;
    }
    return to;
  }

  private addEdge(from: number, kind: Edge['kind'], to: number, value = 0): void {
    const known = this.edges[from];
    const edge = { to, kind, value };
    // An array of one element takes 8 bytes for it; an empty array that grows takes 136.
    if (known === undefined) this.edges[from] = [edge];
    else known.push(edge);
  }

  private edgesOf(state: number, kind: Edge['kind']): Edge[] {
    return (this.edges[state] ?? []).filter((edge) => edge.kind === kind);
  }

  /** The states that can be reached from a state without reading or skipping a word. */
  private reach(state: number): Set<number> {
    const reached = new Set([state]);
    for (const at of reached) for (const { to } of this.edgesOf(at, 'empty')) reached.add(to);
    return reached;
  }

  private findSteps(state: number): Steps {
    const steps = new Map<number, PhraseStep[]>();
    for (const at of this.reach(state)) {
      for (const { to, value: word } of this.edgesOf(at, 'word')) {
        const known = steps.get(word);
        if (known === undefined) steps.set(word, this.enter(to, 0));
        else known.push(...this.enter(to, 0));
      }
    }
    return steps;
  }

  private enter(state: number, skips: number): PhraseStep[] {
    const steps = [{ state, skips }];
    for (const at of this.reach(state)) {
      for (const { to, value: words } of this.edgesOf(at, 'skip')) steps.push(...this.enter(to, words));
    }
    return steps;
  }

  /** The state whose steps this state shares: the only one it leads to, if it has no words of its own. */
  private onlyWay(state: number): number {
    const [only, ...others] = this.edgesOf(state, 'empty');
    if (only === undefined || others.length > 0 || this.edgesOf(state, 'word').length > 0) return state;
    return this.onlyWay(only.to);
  }
}

/** The phrases that the words so far may still become, as a set of places in the phrase graph. */
export interface PhraseSet<Label> {
  readonly steps: readonly PhraseStep[];
  /** The phrases completed by the word that led here. */
  readonly ends: readonly PhraseEnd<Label>[];
  /** False if nothing can follow. */
  readonly open: boolean;
  /** Whether the set may skip a word. */
  readonly skips: boolean;
  /** Computed so far: the sets that words lead to, and the results of merging this set with others. */
  readonly next: Map<number, PhraseSet<Label> | null>;
  readonly merged: Map<PhraseSet<Label>, PhraseSet<Label>>;
  skipped: PhraseSet<Label> | undefined;
}

/** Meaningful text needs some hundreds of sets; made-up text must not fill the memory. */
const SETS_MAX = 10_000;

/**
 * Turns the phrase graph into a deterministic one, where each word leads to one set, as far as texts need it: sets are
 * made on first use and kept. A scan then costs one map look-up per word, however many phrases begin alike.
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

  /** The set that phrases begin from. */
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

  /** The set after a word that is not part of the phrase. */
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
