import type { Phrase, PhraseElement } from './phrase-syntax.ts';

/**
 * Keeps a graph's edges, each with a value, in three arrays of numbers. Nearly all of the phrase graph's 18,000 states
 * have one edge: with maps and lists of their own they took 13 MB (docs/benchmarks/performance-log.md).
 */
class GraphEdges {
  /** Origin, target and value, one edge after the other. Empty once they are sorted. */
  private added: number[] = [];
  /** The edges of each state begin here; the last element is the end of all edges. */
  private starts = new Int32Array(1);
  private targets = new Int32Array(0);
  private values = new Int32Array(0);

  add(from: number, to: number, value: number): void {
    this.added.push(from, to, value);
  }

  /** Makes the edges readable by state, in the order in which they were added. No more may be added afterwards. */
  sort(states: number): void {
    const { added } = this;
    const starts = new Int32Array(states + 1);
    const at = (index: number) => added[index] ?? 0;
    for (let edge = 0; edge < added.length; edge += 3) starts[at(edge) + 1] = (starts[at(edge) + 1] ?? 0) + 1;
    for (let state = 0; state < states; state += 1) starts[state + 1] = (starts[state + 1] ?? 0) + (starts[state] ?? 0);
    const next = starts.slice();
    this.targets = new Int32Array(added.length / 3);
    this.values = new Int32Array(added.length / 3);
    for (let edge = 0; edge < added.length; edge += 3) {
      const place = next[at(edge)] ?? 0;
      next[at(edge)] = place + 1;
      this.targets[place] = at(edge + 1);
      this.values[place] = at(edge + 2);
    }
    this.starts = starts;
    this.added = [];
  }

  count(state: number): number {
    return (this.starts[state + 1] ?? 0) - (this.starts[state] ?? 0);
  }

  firstOf(state: number): number {
    return this.targets[this.starts[state] ?? 0] ?? 0;
  }

  forEach(state: number, act: (to: number, value: number) => void): void {
    const end = this.starts[state + 1] ?? 0;
    for (let at = this.starts[state] ?? 0; at < end; at += 1) act(this.targets[at] ?? 0, this.values[at] ?? 0);
  }
}

/** A phrase continues after a word in this state, once at most `skips` words were skipped. */
export interface PhraseStep {
  readonly state: number;
  readonly skips: number;
}

/** The end of a phrase; the phrase counts unless one of these words comes next. */
export interface PhraseEnd<Label> {
  readonly label: Label;
  readonly unlessNext: ReadonlySet<number> | undefined;
}

type Steps = ReadonlyMap<number, readonly PhraseStep[]>;

/** Phrases that begin with the same elements share their states. */
export class PhraseGraph<Label> {
  /** A word's index is its place here. */
  readonly words: string[] = [];
  private readonly wordIndex = new Map<string, number>();
  private states = 0;
  /** The state after an element, by the state before it and the element's source. */
  private readonly shared = new Map<string, number>();
  /** An edge's value is its word, or for a skip edge how many words may be skipped. */
  private readonly wordEdges = new GraphEdges();
  private readonly emptyEdges = new GraphEdges();
  private readonly skipEdges = new GraphEdges();
  private readonly endsOf = new Map<number, PhraseEnd<Label>[]>();
  private readonly stepsOf: (Steps | undefined)[] = [];
  /** Phrases that may stand anywhere begin in the first, those that may only open a sentence in the second. */
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

  /** All phrases have been added: makes the graph readable, and frees what only adding needs. */
  close(): void {
    for (const edges of [this.wordEdges, this.emptyEdges, this.skipEdges]) edges.sort(this.states);
    this.shared.clear();
    this.wordIndex.clear();
  }

  steps(state: number): Steps {
    const known = this.stepsOf[state];
    if (known !== undefined) return known;
    const only = this.onlyWay(state);
    const steps = only === state ? this.findSteps(state) : this.steps(only);
    this.stepsOf[state] = steps;
    return steps;
  }

  ends(state: number): readonly PhraseEnd<Label>[] {
    return this.reach(state).flatMap((reached) => this.endsOf.get(reached) ?? []);
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
        this.wordEdges.add(from, to, this.indexOf(element.word));
        break;
      case 'skip':
        this.skipEdges.add(from, to, element.words);
        break;
      case 'oneOf':
        for (const row of element.alternatives) {
          const last = row.reduce((at, inner) => this.addElement(at, inner), from);
          this.emptyEdges.add(last, to, 0);
        }
        if (element.optional) this.emptyEdges.add(from, to, 0);
        break;
    }
    return to;
  }

  /** The states that can be reached from a state without reading or skipping a word. */
  private reach(state: number): number[] {
    if (this.emptyEdges.count(state) === 0) return [state];
    const reached = new Set([state]);
    for (const at of reached) {
      this.emptyEdges.forEach(at, (to) => {
        reached.add(to);
      });
    }
    return [...reached];
  }

  private findSteps(state: number): Steps {
    const steps = new Map<number, PhraseStep[]>();
    for (const at of this.reach(state)) {
      this.wordEdges.forEach(at, (to, word) => {
        const known = steps.get(word);
        if (known === undefined) steps.set(word, this.enter(to, 0));
        else known.push(...this.enter(to, 0));
      });
    }
    return steps;
  }

  private enter(state: number, skips: number): PhraseStep[] {
    const steps = [{ state, skips }];
    for (const at of this.reach(state)) {
      this.skipEdges.forEach(at, (to, words) => {
        steps.push(...this.enter(to, words));
      });
    }
    return steps;
  }

  /** The state whose steps this state shares: the only one it leads to, if it has no words of its own. */
  private onlyWay(state: number): number {
    if (this.emptyEdges.count(state) !== 1 || this.wordEdges.count(state) > 0) return state;
    return this.onlyWay(this.emptyEdges.firstOf(state));
  }
}
