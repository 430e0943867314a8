/**
 * The edges of a graph with numbered states, each with a value, in three arrays of numbers. Nearly all of the phrase
 * graph's 18,000 states have one edge: with maps and lists of their own they took 13 MB
 * (docs/benchmarks/performance-log.md).
 */
export class GraphEdges {
  /** Origin, target and value, one edge after the other. Empty once they are sorted. */
  private added: number[] = [];
  /** Where the edges of each state begin; the last element is where all edges end. */
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
