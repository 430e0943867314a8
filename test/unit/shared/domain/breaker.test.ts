import { describe, expect, it } from '@jest/globals';

import {
  DEFAULT_BREAKER,
  GATHER_MS,
  NEW_BREAKER,
  PROBE_LEASE_MS,
  afterProbe,
  afterReport,
  afterReset,
  changeBetween,
  claimProbe,
  decisionAt,
  isFailing,
  isNews,
  passageOf,
  renewProbe,
} from '../../../../shared/domain/breaker.ts';
import type { Breaker } from '../../../../shared/domain/breaker.ts';

const T = 1_000_000_000;
const S = DEFAULT_BREAKER;

/** What a worker saw within one second. */
const saw = (ok: number, failures: number, at = T) => ({
  slices: [{ at, ok, failed: failures === 0 ? {} : { status_500: failures } }],
});

/** Reports in turn, all workers having had their time to speak before the last. */
function after(...reports: ReturnType<typeof saw>[]): Breaker {
  let breaker: Breaker = NEW_BREAKER;
  for (const report of reports) breaker = afterReport(breaker, report, S, T);
  return afterReport(breaker, { slices: [] }, S, T + GATHER_MS);
}

const opened = after(saw(0, 10));
const openedAt = T + GATHER_MS;
/** Open, its pause over, and probed by `a`. */
const probeAt = openedAt + S.openMs;
const probed = claimProbe(opened, 'a', probeAt);

describe('a closed breaker', () => {
  it.each([
    ['all of ten', 0, 10],
    ['half of ten', 5, 5],
    ['half of a thousand', 500, 500],
  ])('a closed breaker opens when %s attempts failed', (_what, ok, failures) => {
    expect(after(saw(ok, failures))).toMatchObject({
      state: 'open',
      reason: 'status_500',
      since: openedAt,
      retryAt: openedAt + 10_000,
      errors: { status_500: failures },
    });
  });

  it.each([
    ['nine attempts are too few', 0, 9],
    ['less than half failed', 6, 5],
    ['none failed', 1_000, 0],
  ])('a closed breaker stays closed as %s', (_what, ok, failures) => {
    expect(after(saw(ok, failures)).state).toBe('closed');
  });

  it('counts the attempts of all workers together', () => {
    expect(after(saw(1, 3), saw(0, 3), saw(2, 1)).state).toBe('open');
    expect(after(saw(0, 10), saw(11, 0)).state).toBe('closed');
  });

  it('does not decide before every worker had the time to say what it has seen', () => {
    const told = afterReport(NEW_BREAKER, saw(0, 10), S, T);

    expect(told).toMatchObject({ state: 'closed', failingSince: T });
    expect(decisionAt(told, S, T)).toBe(T + GATHER_MS);
    expect(afterReport(told, saw(0, 5), S, T + GATHER_MS - 1).state).toBe('closed');
    expect(afterReport(told, { slices: [] }, S, T + GATHER_MS).state).toBe('open');
  });

  it('has nothing to decide while too little has failed', () => {
    expect(decisionAt(afterReport(NEW_BREAKER, saw(0, 9), S, T), S, T)).toBeUndefined();
    expect(decisionAt(opened, S, openedAt)).toBeUndefined();
  });

  it('a closed breaker forgets what is older than its window', () => {
    const before = afterReport(NEW_BREAKER, saw(0, 9), S, T);
    const later = T + S.windowMs + 1;

    expect(isFailing(before, S, T)).toBe(true);
    expect(isFailing(before, S, later)).toBe(false);
    expect(afterReport(before, saw(0, 1, later), S, later)).toMatchObject({ state: 'closed' });
    expect(afterReport(before, saw(1, 0, later), S, later).failingSince).toBeNull();
  });

  it('opens at once when the provider refuses us', () => {
    const refused = afterReport(NEW_BREAKER, { slices: [], refusal: 'authentication' }, S, T);

    expect(refused).toMatchObject({ state: 'open', reason: 'authentication', retryAt: T + 10_000 });
    expect(refused.errors).toEqual({ authentication: 1 });
  });

  it('a closed breaker goes by its own settings', () => {
    const eager = { ...S, minAttempts: 2, failureRatio: 1, openMs: 500 };
    const failing = afterReport(NEW_BREAKER, saw(0, 1), eager, T);

    expect(afterReport(failing, saw(0, 1), eager, T + GATHER_MS)).toMatchObject({ state: 'open', pauseMs: 500 });
    expect(afterReport(failing, saw(1, 5), eager, T + GATHER_MS).state).toBe('closed');
  });
});

describe('an open breaker', () => {
  it('lets nothing through until its pause is over, then a probe', () => {
    expect(passageOf(opened, probeAt - 1)).toEqual({ kind: 'wait', ms: 1 });
    expect(passageOf(opened, probeAt)).toEqual({ kind: 'probe' });
  });

  it('an open breaker gives nobody a probe before', () => {
    expect(claimProbe(opened, 'a', probeAt - 1)).toBe(opened);
  });

  it('takes no notice of calls from before it opened', () => {
    expect(afterReport(opened, { ...saw(100, 0), refusal: 'forbidden' }, S, openedAt + 1)).toBe(opened);
  });
});

describe('a half-open breaker', () => {
  it('a half-open breaker has one probe, and everybody else waits', () => {
    expect(probed).toMatchObject({ state: 'half_open', reason: 'status_500', probe: { holder: 'a' } });
    expect(claimProbe(probed, 'b', probeAt + 1)).toBe(probed);
    expect(passageOf(probed, probeAt + 1)).toEqual({ kind: 'wait', ms: 1_000 });
  });

  it('closes when its probe succeeds, and begins to count anew', () => {
    expect(afterProbe(probed, 'a', { kind: 'ok' }, S, probeAt + 5)).toEqual({
      ...NEW_BREAKER,
      version: probed.version,
      reason: 'probe_succeeded',
      since: probeAt + 5,
    });
  });

  it('opens again for twice as long with every probe that fails, up to the most', () => {
    const pauses: number[] = [];
    let breaker = probed;
    let now = probeAt;
    for (let round = 0; round < 5; round += 1) {
      breaker = afterProbe(breaker, 'a', { kind: 'failed', reason: 'timeout' }, S, now);
      expect(breaker).toMatchObject({ state: 'open', reason: 'timeout', retryAt: now + breaker.pauseMs });
      pauses.push(breaker.pauseMs);
      now += breaker.pauseMs;
      breaker = claimProbe(breaker, 'a', now);
    }

    expect(pauses).toEqual([15_000, 15_000, 15_000, 15_000, 15_000]);
    expect(breaker.errors).toEqual({ status_500: 10, timeout: 5 });
  });

  it('gives the probe to the next when it says nothing', () => {
    const free = afterProbe(probed, 'a', { kind: 'void' }, S, probeAt + 5);

    expect(free).toMatchObject({ state: 'half_open', probe: null });
    expect(claimProbe(free, 'b', probeAt + 6).probe?.holder).toBe('b');
  });

  it('gives the probe to the next when its worker is silent for the lease, and then hears the new one only', () => {
    const late = probeAt + PROBE_LEASE_MS;

    const taken = claimProbe(probed, 'b', late);

    expect(claimProbe(probed, 'b', late - 1)).toBe(probed);
    expect(taken.probe?.holder).toBe('b');
    expect(afterProbe(taken, 'a', { kind: 'ok' }, S, late + 1)).toBe(taken);
  });

  it('a half-open breaker keeps a probe whose worker renews it', () => {
    const renewed = renewProbe(probed, 'a', probeAt + PROBE_LEASE_MS - 1);

    expect(claimProbe(renewed, 'b', probeAt + PROBE_LEASE_MS)).toBe(renewed);
    expect(renewProbe(probed, 'b', probeAt)).toBe(probed);
  });
});

describe('a reset', () => {
  it('closes the breaker and forgets what was counted', () => {
    for (const breaker of [opened, probed]) {
      expect(afterReset(breaker, T)).toMatchObject({ state: 'closed', reason: 'reset', retryAt: null, probe: null });
    }
    const failing = afterReport(NEW_BREAKER, saw(0, 9), S, T);
    expect(afterReset(failing, T)).toMatchObject({ state: 'closed', slices: [], failingSince: null });
  });
});

describe('a change', () => {
  it('is told with where it came from, why, and what failed', () => {
    expect(changeBetween('p', NEW_BREAKER, opened, T)).toEqual({
      provider: 'p',
      from: 'closed',
      to: 'open',
      reason: 'status_500',
      at: T,
      retryAt: openedAt + 10_000,
      errors: { status_500: 10 },
    });
    expect(changeBetween('p', probed, afterReset(probed, T), T)).toMatchObject({
      from: 'half_open',
      to: 'closed',
      reason: 'reset',
      errors: { status_500: 10 },
    });
  });

  it('is none where the state stays, though a free probe is news', () => {
    const free = afterProbe(probed, 'a', { kind: 'void' }, S, probeAt);

    expect(changeBetween('p', probed, free, T)).toBeUndefined();
    expect(isNews(probed, free)).toBe(true);
  });

  it('is news with the first failure, not with the second', () => {
    const first = afterReport(NEW_BREAKER, saw(0, 1), S, T);

    expect(isNews(NEW_BREAKER, first)).toBe(true);
    expect(isNews(first, afterReport(first, saw(0, 1), S, T))).toBe(false);
  });
});

describe('a clock that was put back by an hour', () => {
  const now = T - 3_600_000;

  it('leaves the probe of an open breaker free', () => {
    expect(passageOf(opened, now)).toEqual({ kind: 'probe' });
  });

  it('leaves the place of a probe that was not renewed to the next', () => {
    expect(passageOf(probed, now)).toEqual({ kind: 'probe' });
    expect(passageOf(claimProbe(probed, 'b', now), now).kind).toBe('wait');
  });

  it('lets a breaker that had failures open', () => {
    const failing = afterReport(NEW_BREAKER, saw(0, 9), S, T);

    const seen = afterReport(failing, saw(0, 10, now), S, now);

    expect(afterReport(seen, { slices: [] }, S, now + GATHER_MS)).toMatchObject({
      state: 'open',
      errors: { status_500: 10 },
    });
  });
});
