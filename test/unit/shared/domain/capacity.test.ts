import { expect, test } from '@jest/globals';

import { afterReport } from '../../../../shared/domain/capacity-shares.ts';
import {
  CEILING_MAX,
  FIRST_CEILING,
  isServing,
  lateAfterMs,
  newCapacity,
  sizeOf,
} from '../../../../shared/domain/capacity.ts';
import type { Capacity, CapacityReport } from '../../../../shared/domain/capacity.ts';

import { quiet } from '../../../support/capacity-report.ts';

interface Call {
  worker: number;
  epoch: number;
  at: number;
  textAt: number | undefined;
  endsAt: number;
}

interface World {
  workers: number;
  /** Calls that the provider runs at once; what is above waits inside it. */
  slots: number;
  firstMs: number;
  answerMs: number;
  /** Requests a minute, by time; the provider counts and answers 429. */
  perMinute?: (now: number) => number;
  tokensPerMinute?: (now: number) => number;
  callTokens?: number;
  set?: number;
  /** How many requests want to be called at a time. */
  callers: number;
  forMs: number;
  /** By how much the provider is slower, by time. */
  slower?: (now: number) => number;
}

const TICK_MS = 10;
const REPORT_MS = 100;

/** A fleet before a provider, in steps of 10 ms; callers come back as soon as they are answered. */
function simulate(world: World) {
  const { workers, slots, firstMs, answerMs, callers, forMs, set, callTokens = 100, slower = () => 1 } = world;
  let capacity: Capacity = newCapacity();
  const calls: Call[] = [];
  const inside: Call[] = [];
  const fresh = (): CapacityReport[] => Array.from({ length: workers }, (_, index) => quiet(`w${index}`));
  const reports = fresh();
  const history: { now: number; inFlight: number; begun: number; throttled: number; found: number; longest: number }[] =
    [];
  let waiting = callers;
  const bucket = { requests: world.perMinute?.(0) ?? Infinity, tokens: world.tokensPerMinute?.(0) ?? Infinity };
  let [begun, throttled, longest] = [0, 0, 0];

  const freeOf = (index: number) => {
    const share = capacity.shares[`w${index}`];
    const report = reports[index];
    if (share === undefined || report === undefined) return 0;
    const inFlight = calls.filter(({ worker }) => worker === index).length;
    const requests = share.requests === null ? Infinity : Math.floor(share.requests - report.spent.requests);
    const tokens = share.tokens === null ? Infinity : Math.ceil((share.tokens - report.spent.tokens) / callTokens);
    return Math.min(share.places - inFlight, requests, tokens);
  };

  function begin(now: number, index: number): void {
    const report = reports[index];
    if (report === undefined) return;
    const [limit, tokenLimit] = [world.perMinute?.(now) ?? Infinity, world.tokensPerMinute?.(now) ?? Infinity];
    report.spent.requests += 1;
    report.spent.tokens += callTokens;
    const isCounted = limit !== Infinity || tokenLimit !== Infinity;
    const isRefused = bucket.requests < 1 || bucket.tokens < callTokens;
    if (isRefused) {
      throttled += 1;
      Object.assign(report, { throttled: report.throttled + 1, newThrottled: 1, retryAfterMs: 1_000 });
    } else {
      begun += 1;
      waiting -= 1;
      bucket.requests -= 1;
      bucket.tokens -= callTokens;
      const call: Call = { worker: index, epoch: capacity.epoch, at: now, textAt: undefined, endsAt: Infinity };
      calls.push(call);
      inside.push(call);
    }
    if (isCounted) {
      if (limit !== Infinity) report.limits.requests = { limit, remaining: Math.floor(bucket.requests) };
      if (tokenLimit !== Infinity) report.limits.tokens = { limit: tokenLimit, remaining: Math.floor(bucket.tokens) };
    }
  }

  for (let now = 0; now < forMs; now += TICK_MS) {
    const [limit, tokenLimit] = [world.perMinute?.(now) ?? Infinity, world.tokensPerMinute?.(now) ?? Infinity];
    bucket.requests = Math.min(limit, bucket.requests + (limit * TICK_MS) / 60_000);
    bucket.tokens = Math.min(tokenLimit, bucket.tokens + (tokenLimit * TICK_MS) / 60_000);
    // The provider: the first calls that came have its slots.
    for (const call of inside.slice(0, slots)) {
      if (call.endsAt !== Infinity) continue;
      call.textAt = now + firstMs * slower(now);
      call.endsAt = call.textAt + answerMs;
    }
    for (const call of [...calls]) {
      const report = reports[call.worker];
      if (report === undefined) continue;
      if (call.textAt === now) {
        report.served += 1;
        const first = report.firsts[0];
        if (first !== undefined && call.epoch === capacity.epoch)
          Object.assign(first, { count: first.count + 1, ms: first.ms + now - call.at });
        longest = Math.max(longest, now - call.at);
      }
      if (call.endsAt > now) continue;
      calls.splice(calls.indexOf(call), 1);
      inside.splice(inside.indexOf(call), 1);
      waiting += 1;
    }
    for (const [index, report] of reports.entries()) {
      if ((now + index * 30) % REPORT_MS !== 0) continue;
      const own = calls.filter(({ worker }) => worker === index);
      const pending = own.filter(({ textAt }) => textAt === undefined || textAt > now);
      const late = pending.filter(({ at }) => now - at > lateAfterMs(capacity, 0));
      const newLate = late.filter(({ epoch }) => epoch === capacity.epoch);
      const state = {
        ...{ inFlight: own.length, used: own.length, waits: waiting > 0, pending: pending.length, late: late.length },
        ...{ newLate: newLate.length, newLateMs: Math.max(0, ...newLate.map(({ at }) => now - at)), callTokens },
        epoch: capacity.epoch,
      };
      capacity = afterReport(capacity, { ...report, ...state }, set, now);
      reports[index] = quiet(`w${index}`);
    }
    const isPaused = capacity.pausedUntil > now;
    for (let index = 0; index < workers && !isPaused; index += 1) {
      while (waiting > 0 && freeOf(index) > 0) begin(now, index);
    }
    history.push({ now, inFlight: calls.length, begun, throttled, found: capacity.found, longest });
  }
  const at = (now: number) => history[Math.min(history.length - 1, now / TICK_MS)] ?? { begun: 0, throttled: 0 };
  return {
    history,
    begunBetween: (from: number, to: number) => at(to).begun - at(from).begun,
    throttledBetween: (from: number, to: number) => at(to).throttled - at(from).throttled,
    last: history.at(-1),
    capacity,
  };
}

test('A fleet before a provider with a ceiling that is set never has more calls in flight than that', () => {
  const { history, begunBetween } = simulate({
    ...{ workers: 3, slots: 4, firstMs: 200, answerMs: 1_800, callers: 100, forMs: 60_000, set: 4 },
  });
  expect(Math.max(...history.map(({ inFlight }) => inFlight))).toBe(4);
  // 4 at a time of 2 s each: 2 a second, but for what passes until a free place is seen.
  expect(begunBetween(10_000, 60_000)).toBeGreaterThanOrEqual(95);
});

test('The ceiling of a provider of 4 slots is found, and it is kept busy', () => {
  const { history, begunBetween, last } = simulate({
    ...{ workers: 2, slots: 4, firstMs: 200, answerMs: 1_800, callers: 100, forMs: 120_000 },
  });
  const later = history.filter(({ now }) => now > 10_000).map(({ inFlight }) => inFlight);
  expect(Math.max(...later)).toBeLessThanOrEqual(8);
  expect(begunBetween(10_000, 120_000)).toBeGreaterThanOrEqual(0.9 * 2 * 110);
  // Nobody waits inside the provider for as long as the time limit of a first token.
  expect(last?.longest).toBeLessThan(15_000);
});

test('A provider of one slot whose answers take long has few calls that wait inside it', () => {
  const { history, last } = simulate({
    ...{ workers: 2, slots: 1, firstMs: 200, answerMs: 4_000, callers: 50, forMs: 300_000 },
  });
  const later = history.filter(({ now }) => now > 60_000);
  expect(Math.max(...later.map(({ inFlight }) => inFlight))).toBeLessThanOrEqual(3);
  expect(last?.inFlight).toBeGreaterThanOrEqual(1);
});

test('A provider that can take 500 at once has them within 5 s of a cold start', () => {
  const { history } = simulate({
    ...{ workers: 4, slots: 2_000, firstMs: 400, answerMs: 8_000, callers: 500, forMs: 5_000 },
  });
  expect(history.some(({ inFlight }) => inFlight === 500)).toBe(true);
});

test.each([
  ['the same limit all the time', (now: number) => (now >= 0 ? 600 : 0)],
  ['a limit that is halved', (now: number) => (now < 60_000 ? 600 : 300)],
])('A provider that counts requests and tokens is used to 95 % with 1 %% of 429: %s', (_, perMinute) => {
  const tokensPerMinute = (now: number) => perMinute(now) * 100;
  const { begunBetween, throttledBetween } = simulate({
    ...{ workers: 4, slots: 1_000, firstMs: 300, answerMs: 1_000, callers: 200, forMs: 180_000 },
    ...{ perMinute, tokensPerMinute },
  });
  const allowed = 90 * (perMinute(100_000) / 60);
  expect(begunBetween(90_000, 180_000) / allowed).toBeGreaterThanOrEqual(0.95);
  const calls = begunBetween(90_000, 180_000) + throttledBetween(90_000, 180_000);
  expect(throttledBetween(90_000, 180_000) / calls).toBeLessThanOrEqual(0.01);
});

test('A provider that becomes slower by itself keeps its ceiling', () => {
  const { history, last } = simulate({
    ...{ workers: 2, slots: 1_000, firstMs: 300, answerMs: 1_000, callers: 60, forMs: 90_000 },
    slower: (now) => (now < 20_000 ? 1 : 10),
  });
  const before = history.find(({ now }) => now === 19_000)?.found ?? 0;
  expect(before).toBeGreaterThanOrEqual(60);
  expect(last?.inFlight).toBe(60);
});

test('A 429 of a provider that says nothing about its limits lowers the ceiling and pauses the fleet', () => {
  let capacity = newCapacity();
  capacity = afterReport(capacity, quiet('a', { inFlight: 8, used: 8, waits: true }), undefined, 1_000);
  capacity = afterReport(
    capacity,
    quiet('a', { inFlight: 8, used: 8, waits: true, throttled: 2, newThrottled: 2, retryAfterMs: 3_000 }),
    undefined,
    2_000,
  );
  expect(capacity.found).toBe(5);
  expect(capacity.pausedUntil).toBe(5_000);
});

test('Prompts are compared with others of their size', () => {
  const firsts = quiet('a').firsts;
  firsts[sizeOf(20_000)] = { count: 1, ms: 9_000 };
  firsts[sizeOf(10)] = { count: 2, ms: 400 };
  const capacity = afterReport(newCapacity(), quiet('a', { firsts, inFlight: 3, used: 3 }), undefined, 0);
  expect(lateAfterMs(capacity, sizeOf(10))).toBeLessThan(1_000);
  expect(lateAfterMs(capacity, sizeOf(20_000))).toBeGreaterThan(9_000);
  expect(lateAfterMs(capacity, sizeOf(1_000))).toBe(Infinity);
});

test('A provider serves while a call has succeeded lately', () => {
  const capacity = afterReport(newCapacity(), quiet('a', { served: 1 }), undefined, 5_000);
  expect(isServing(newCapacity(), 5_000)).toBe(false);
  expect(isServing(capacity, 6_000)).toBe(true);
  expect(isServing(capacity, 60_000)).toBe(false);
});

test('A cold start is small, and no ceiling grows without end', () => {
  expect(newCapacity().found).toBe(FIRST_CEILING);
  const large = { ...newCapacity(), found: CEILING_MAX };
  const report = quiet('a', { inFlight: CEILING_MAX, used: CEILING_MAX, waits: true, served: 100 });
  expect(afterReport(large, report, undefined, 0).found).toBe(CEILING_MAX);
});
