import { describe, expect, it } from '@jest/globals';

import { mainReason, mergeSlices, recordAttempt, totalsOf } from '../../../../shared/domain/breaker.ts';
import type { Slice } from '../../../../shared/domain/breaker.ts';

const WINDOW_MS = 30_000;
const slice = (at: number, ok: number, failed: Record<string, number> = {}): Slice => ({ at, ok, failed });

describe('a window of attempts', () => {
  it('keeps at most one slice for a thirtieth of its length, however many attempts there are', () => {
    const slices: Slice[] = [];

    for (let now = 0; now < 10 * WINDOW_MS; now += 7) recordAttempt(slices, undefined, WINDOW_MS, now);

    expect(slices.length).toBeLessThanOrEqual(32);
    expect(slices[0]?.at).toBeGreaterThanOrEqual(9 * WINDOW_MS - 1_000);
  });

  it('a window of attempts lets go of what lies ahead once the clock was put back', () => {
    const slices: Slice[] = [slice(10_000_000, 0, { timeout: 9 })];

    recordAttempt(slices, undefined, WINDOW_MS, 10_000);

    expect(slices).toEqual([slice(10_000, 1)]);
  });

  it('a window of attempts does not count what began before it', () => {
    const slices = [slice(1_000, 5), slice(2_000, 0, { timeout: 1 })];

    expect(totalsOf(slices, 1_001)).toMatchObject({ attempts: 1, failures: 1 });
  });
});

describe('the windows of several workers', () => {
  it('are added up, slice by slice, and without what is too old', () => {
    const merged = mergeSlices(
      [slice(1_000, 9), slice(3_000, 1, { timeout: 1 })],
      [slice(2_000, 4), slice(3_000, 2, { timeout: 1, status_500: 3 })],
      2_000,
    );

    expect(merged).toEqual([slice(2_000, 4), slice(3_000, 3, { timeout: 2, status_500: 3 })]);
  });
});

it('the main reason is the one that came most often', () => {
  expect(mainReason({ timeout: 2, status_500: 3, connection_or_format: 1 })).toBe('status_500');
});
