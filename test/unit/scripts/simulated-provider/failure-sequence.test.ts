import { describe, expect, it } from '@jest/globals';
import type { FailureSequence } from '../../../../scripts/simulated-provider/failure-sequence.ts';
import { createFailureSequence } from '../../../../scripts/simulated-provider/failure-sequence.ts';

const always = { fail: 'status', failRate: 1, failTimes: null } as const;

function run(sequence: FailureSequence, failRate: number, calls: number): string[] {
  return Array.from({ length: calls }, () => sequence.next({ ...always, failRate }, 'key'));
}

describe('createFailureSequence', () => {
  it('fails every call at rate 1 and none at rate 0', () => {
    expect(new Set(run(createFailureSequence(), 1, 100))).toEqual(new Set(['status']));
    expect(new Set(run(createFailureSequence(), 0, 100))).toEqual(new Set(['none']));
  });

  it.each([0.05, 0.3, 0.5, 0.9])('fails about the share %d of the calls', (failRate) => {
    const failed = run(createFailureSequence(), failRate, 10_000).filter((mode) => mode === 'status').length;

    expect(failed / 10_000).toBeGreaterThan(failRate - 0.02);
    expect(failed / 10_000).toBeLessThan(failRate + 0.02);
  });

  it('fails the same calls again after a reset', () => {
    const sequence = createFailureSequence();
    const first = run(sequence, 0.4, 200);
    sequence.reset();

    expect(run(sequence, 0.4, 200)).toEqual(first);
  });

  it('does not count calls that have no failure setting', () => {
    const [plain, mixed] = [createFailureSequence(), createFailureSequence()];
    mixed.next({ fail: 'none', failRate: 0.4, failTimes: null }, 'key');

    expect(run(mixed, 0.4, 50)).toEqual(run(plain, 0.4, 50));
  });

  it('fails only the first calls of each key with fail_times', () => {
    const sequence = createFailureSequence();
    const twice = { ...always, failTimes: 2 };
    const modes = ['a', 'a', 'b', 'a', 'b', 'b'].map((key) => sequence.next(twice, key));

    expect(modes).toEqual(['status', 'status', 'status', 'none', 'status', 'none']);
  });

  it.each(['invalid', 'untrue'] as const)('gives JSON from the second call of a key on with %s_once', (kind) => {
    const sequence = createFailureSequence();
    const given = ['a', 'b', 'a', 'b'].map((key) => sequence.jsonKind({ json: `${kind}_once` }, key));

    expect(given).toEqual([kind, kind, 'valid', 'valid']);
  });
});
