import { expect, test } from '@jest/globals';

import { SHARE_MS, newCapacity, sumOf } from '../../../../shared/domain/capacity.ts';
import { afterReport } from '../../../../shared/domain/capacity-shares.ts';
import { quiet } from '../../../support/capacity-report.ts';

test('A share that its worker does not renew returns to the others', () => {
  let capacity = afterReport(newCapacity(), quiet('dead', { inFlight: 0, used: 4, waits: true }), 4, 0);
  expect(capacity.shares['dead']?.places).toBe(4);
  capacity = afterReport(capacity, quiet('alive', { waits: true }), 4, 1_000);
  expect(capacity.shares['alive']?.places).toBe(0);
  capacity = afterReport(capacity, quiet('alive', { waits: true }), 4, SHARE_MS + 1);
  expect(capacity.shares['alive']?.places).toBe(4);
});

test('A worker without calls leaves its places to those who wait', () => {
  let capacity = afterReport(newCapacity(), quiet('idle'), 1, 0);
  expect(capacity.shares['idle']?.places).toBe(1);
  capacity = afterReport(capacity, quiet('waiting', { waits: true }), 1, 100);
  capacity = afterReport(capacity, quiet('idle'), 1, 200);
  capacity = afterReport(capacity, quiet('waiting', { waits: true }), 1, 300);
  expect(capacity.shares['waiting']?.places).toBe(1);
});

test.each([1, 2, 4])('Workers that all wait take turns where there are fewer places than workers: %d', (ceiling) => {
  const workers = ['a', 'b', 'c'];
  let capacity = newCapacity();
  const had = new Set<string>();
  for (let now = 0; now < 2_000; now += 100) {
    for (const worker of workers) {
      capacity = afterReport(capacity, quiet(worker, { waits: true }), ceiling, now);
      if ((capacity.shares[worker]?.places ?? 0) > 0) had.add(worker);
      expect(sumOf(capacity.shares, 'places')).toBeLessThanOrEqual(ceiling);
    }
  }
  expect([...had].sort()).toEqual(workers);
});

test('A worker that leaves keeps only what its calls need', () => {
  let capacity = afterReport(newCapacity(), quiet('a', { inFlight: 0, used: 4, waits: true }), 4, 0);
  capacity = afterReport(capacity, quiet('a', { inFlight: 1, used: 1, leaves: true }), 4, 100);
  expect(sumOf(capacity.shares, 'places')).toBe(1);
  capacity = afterReport(capacity, quiet('a', { leaves: true }), 4, 200);
  expect(capacity.shares).toEqual({});
});

test('Places that nobody waits for are spread, so that requests that come at once need not ask', () => {
  let capacity = { ...newCapacity(), found: 100 };
  for (const now of [0, 10, 20]) {
    capacity = afterReport(capacity, quiet('a', { inFlight: 10, used: 10 }), undefined, now);
    capacity = afterReport(capacity, quiet('b'), undefined, now);
  }
  expect(capacity.shares['a']?.places).toBeGreaterThan(40);
  expect(capacity.shares['b']?.places).toBeGreaterThan(30);
  expect(sumOf(capacity.shares, 'places')).toBeLessThanOrEqual(100);
});
