import { describe, expect, it } from '@jest/globals';

import { summarise } from '../../../../scripts/bench/cases.ts';
import type { RunResult } from '../../../../scripts/bench/cases.ts';

function runOf(round: number, requestsPerSecond: number, changes: Partial<RunResult> = {}): RunResult {
  return {
    system: 'parley',
    mode: 'complete',
    clients: 32,
    round,
    answered: 100,
    errors: {},
    requestsPerSecond,
    latencyP50Ms: 1,
    latencyP99Ms: 2,
    firstChunkP50Ms: undefined,
    cpuMsPerRequest: { ingress: round, worker: 10 * round },
    pipelineCpuMsPerRequest: 11 * round,
    peakMb: { ingress: 100, worker: 200 },
    cpuShare: { pipeline: 0.7, provider: 0.1, generator: 0.1, others: 0 },
    ...changes,
  };
}

describe('summarise', () => {
  it('takes the median of each figure, so that one disturbed round does not count', () => {
    const summary = summarise([runOf(1, 500), runOf(2, 10), runOf(3, 520)]);

    expect(summary).toMatchObject({ requestsPerSecond: 500, cpuMsPerRequest: { ingress: 2, worker: 20 } });
  });

  it('takes the mean of the middle two of an even number of rounds', () => {
    expect(summarise([runOf(1, 400), runOf(2, 500)]).requestsPerSecond).toBe(450);
  });

  it('adds up the errors of all rounds', () => {
    const errors = [{ 'status 503': 1 }, { 'status 503': 2, 'status 500': 1 }];

    expect(summarise(errors.map((of, index) => runOf(index, 1, { errors: of }))).errors).toEqual({
      'status 503': 3,
      'status 500': 1,
    });
  });

  it('has no time to the first chunk for complete answers', () => {
    expect(summarise([runOf(1, 1)]).firstChunkP50Ms).toBeUndefined();
  });
});
