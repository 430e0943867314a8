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

interface GraphState<Label> {
  readonly words: Map<number, number>;
  readonly empty: number[];
  readonly skips: { readonly to: number; readonly words: number }[];
  readonly ends: PhraseEnd<Label>[];
}

/** All phrases as one automaton over words. Phrases that begin with the same elements share their states. */
export class PhraseGraph<Label> {
  /** The vocabulary; a word's index is its place here. */
  readonly words: string[] = [];
  private readonly wordIndex = new Map<string, number>();
  private readonly states: GraphState<Label>[] = [];
  /** The state behind an element, by the state before it and the source of the element. */
  private readonly shared = new Map<string, number>();
  private readonly stepsOf: (Steps | undefined)[] = [];
  /** Where phrases begin, and where those begin that only a sentence may begin with. */
  readonly anywhere = this.addState();
  readonly sentenceStart = this.addState();

  add(phrase: Phrase, label: Label): void {
    const from = phrase.atSentenceStart ? this.sentenceStart : this.anywhere;
    const last = phrase.elements.reduce((at, element) => this.addElement(at, element), from);
    const unlessNext = new Set(phrase.unlessNext.map((word) => this.indexOf(word)));
    this.state(last).ends.push({ label, unlessNext: unlessNext.size > 0 ? unlessNext : undefined });
  }

  /** Where each word leads from a state. No phrase may be added any more. */
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
    return this.reach(state).flatMap((reached) => this.state(reached).ends);
  }

  private addState(): number {
    return this.states.push({ words: new Map(), empty: [], skips: [], ends: [] }) - 1;
  }

  private state(index: number): GraphState<Label> {
    const state = this.states[index];
    if (state === undefined) throw new Error(`The phrase graph has no state ${index}.`);
    return state;
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
        this.state(from).words.set(this.indexOf(element.word), to);
        break;
      case 'skip':
        this.state(from).skips.push({ to, words: element.words });
        break;
      case 'oneOf':
        for (const row of element.alternatives) {
          const last = row.reduce((at, inner) => this.addElement(at, inner), from);
          this.state(last).empty.push(to);
        }
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

  private findSteps(state: number): Steps {
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
