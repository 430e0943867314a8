import { describe, expect, it } from '@jest/globals';

import { GraphEdges } from '../../../../../workers/moderation/local/graph-edges.ts';

function edgesOf(edges: GraphEdges, state: number): [number, number][] {
  const found: [number, number][] = [];
  edges.forEach(state, (to, value) => found.push([to, value]));
  return found;
}

describe('the edges of a graph', () => {
  it('are read by state, in the order in which they were added', () => {
    const edges = new GraphEdges();
    edges.add(2, 7, 70);
    edges.add(0, 5, 50);
    edges.add(2, 6, 60);
    edges.add(7, 2, 20);

    edges.sort(8);

    expect(edgesOf(edges, 2)).toEqual([
      [7, 70],
      [6, 60],
    ]);
    expect(edgesOf(edges, 0)).toEqual([[5, 50]]);
    expect(edgesOf(edges, 7)).toEqual([[2, 20]]);
    expect(edgesOf(edges, 1)).toEqual([]);
    expect([edges.count(2), edges.count(1), edges.firstOf(2)]).toEqual([2, 0, 7]);
  });
});
