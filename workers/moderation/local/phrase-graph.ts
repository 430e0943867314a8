import type { Phrase, PhraseElement } from './phrase-syntax.ts';

/** Where a phrase goes on after a word: a state, and how many words may be skipped before the next one. */
export interface PhraseStep {
  readonly state: number;
  readonly skips: number;
}

/** The end of a phrase: it counts unless one of the words comes next. */
export interface PhraseEnd<Label> {
  readonly label: Label;
  readonly unlessNext: ReadonlySet<number> | undefined;
}

type Steps = ReadonlyMap<number, readonly PhraseStep[]>;

const NO_STEPS: Steps = new Map();

/** All phrases as one automaton over words, without empty moves. */
export interface PhraseGraph<Label> {
  readonly anywhere: Steps;
  readonly atSentenceStart: Steps;
  /** By state: where each word leads. */
  readonly next: readonly Steps[];
  /** By state: the phrases that are complete there. */
  readonly ends: readonly (readonly PhraseEnd<Label>[])[];
}

interface DraftState<Label> {
  readonly words: Map<number, number>;
  readonly empty: number[];
  readonly skips: { readonly to: number; readonly words: number }[];
  readonly ends: PhraseEnd<Label>[];
}

/** Collects phrases that share their beginnings, then flattens them to a graph. */
export class PhraseGraphBuilder<Label> {
  readonly words: string[] = [];
  private readonly wordIndex = new Map<string, number>();
  private readonly states: DraftState<Label>[] = [];
  /** Phrases that begin with the same elements share the states of these: by state and source of the element. */
  private readonly shared = new Map<string, number>();
  private readonly anywhere = this.addState();
  private readonly sentenceStart = this.addState();

  add(phrase: Phrase, label: Label): void {
    const last = this.addRow(phrase.atSentenceStart ? this.sentenceStart : this.anywhere, phrase.elements);
    const unlessNext = new Set(phrase.unlessNext.map((word) => this.indexOf(word)));
    this.state(last).ends.push({ label, unlessNext: unlessNext.size > 0 ? unlessNext : undefined });
  }

  build(): PhraseGraph<Label> {
    const flattened = new Map<number, Steps>();
    const next = this.states.map((_, state) => {
      const only = this.onlyWay(state);
      const steps = flattened.get(only) ?? this.flatten(only);
      flattened.set(only, steps);
      return steps;
    });
    return {
      anywhere: next[this.anywhere] ?? NO_STEPS,
      atSentenceStart: next[this.sentenceStart] ?? NO_STEPS,
      next,
      ends: this.states.map((_, state) => this.reach(state).flatMap((reached) => this.state(reached).ends)),
    };
  }

  private addState(): number {
    return this.states.push({ words: new Map(), empty: [], skips: [], ends: [] }) - 1;
  }

  private state(index: number): DraftState<Label> {
    const state = this.states[index];
    if (state === undefined) throw new Error(`The phrase graph has no state ${index}.`);
    return state;
  }

  private indexOf(word: string): number {
    const known = this.wordIndex.get(word) ?? this.words.push(word) - 1;
    this.wordIndex.set(word, known);
    return known;
  }

  private addRow(from: number, elements: readonly PhraseElement[]): number {
    return elements.reduce((at, element) => this.addElement(at, element), from);
  }

  private addElement(from: number, element: PhraseElement): number {
    const key = `${from} ${element.source}`;
    const known = this.shared.get(key);
    if (known !== undefined) return known;
    const to = this.addState();
    this.shared.set(key, to);
    switch (element.kind) {
      case 'word':
        this.state(from).words.set(this.indexOf(element.word), to);
        break;
      case 'skip':
        this.state(from).skips.push({ to, words: element.words });
        break;
      case 'oneOf':
        for (const row of element.alternatives) this.state(this.addRow(from, row)).empty.push(to);
        if (element.optional) this.state(from).empty.push(to);
        break;
    }
    return to;
  }

  /** The states that a state reaches without a word and without skipping one. */
  private reach(state: number): number[] {
    const { empty } = this.state(state);
    if (empty.length === 0) return [state];
    const reached = new Set([state]);
    for (const at of reached) for (const to of this.state(at).empty) reached.add(to);
    return [...reached];
  }

  private flatten(state: number): Steps {
    const steps = new Map<number, PhraseStep[]>();
    for (const at of this.reach(state)) {
      for (const [word, to] of this.state(at).words) {
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
      for (const skip of this.state(at).skips) steps.push(...this.enter(skip.to, skip.words));
    }
    return steps;
  }

  /** The state whose steps a state shares: the only one it leads to, when it has no words of its own. */
  private onlyWay(state: number): number {
    const { words, empty } = this.state(state);
    const only = empty[0];
    return only === undefined || empty.length > 1 || words.size > 0 ? state : this.onlyWay(only);
  }
}
