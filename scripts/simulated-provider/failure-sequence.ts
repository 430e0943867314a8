import { putNewest } from '../../shared/domain/bounded-map.ts';
import type { FailureMode, Settings } from './settings.ts';
import { scramble } from './write-text.ts';

const KEYS_MAX = 50_000;
const CHANCES = 2 ** 32;

export type JsonKind = 'valid' | 'invalid' | 'untrue';

/**
 * Decides reproducibly which calls fail: `fail_rate` by the call's number among those with a failure setting (so 1,000
 * calls have the same number of failures in every run, in whatever order they come), `fail_times` by how often the same
 * key has failed before.
 */
export function createFailureSequence() {
  const failures = new Map<string, number>();
  const jsonCalls = new Map<string, number>();
  let calls = 0;
  return {
    /** Tells the way in which this call fails. `key` names the request and the target for `fail_times`. */
    next({ fail, failRate, failTimes }: Settings, key: string): FailureMode {
      if (fail === 'none') return 'none';
      calls += 1;
      if (failRate < 1 && scramble(Math.imul(calls, 0x6d2b79f5)) / CHANCES >= failRate) return 'none';
      if (failTimes === null) return fail;
      const before = failures.get(key) ?? 0;
      if (before >= failTimes) return 'none';
      putNewest(failures, key, before + 1, KEYS_MAX);
      return fail;
    },
    /** The answer to this request for JSON. */
    jsonKind({ json }: Settings, key: string): JsonKind {
      if (json === 'valid' || json === 'invalid' || json === 'untrue') return json;
      const before = jsonCalls.get(key) ?? 0;
      putNewest(jsonCalls, key, before + 1, KEYS_MAX);
      if (before > 0) return 'valid';
      return json === 'invalid_once' ? 'invalid' : 'untrue';
    },
    /** Starts over: the same calls fail again. */
    reset(): void {
      failures.clear();
      jsonCalls.clear();
      calls = 0;
    },
  };
}
