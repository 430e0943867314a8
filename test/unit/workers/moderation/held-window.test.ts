import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';

import { createHeldWindow } from '../../../../workers/moderation/held-window.ts';
import { DEFAULT_MODERATION_POLICY, FlaggedError, judge } from '../../../../workers/moderation/moderator.ts';
import type { ModerationVerdict } from '../../../../workers/moderation/moderator.ts';
import { listenersOf } from '../../../support/signals.ts';

const PASSED = judge({}, DEFAULT_MODERATION_POLICY);
const FLAGGED = judge({ hate: 0.9 }, DEFAULT_MODERATION_POLICY);
const HUNDRED = 'x'.repeat(100);

/** A window whose checks wait until the test decides them. */
function openLab() {
  const checks: { text: string; decide: (outcome: ModerationVerdict | Error) => void; signal: AbortSignal }[] = [];
  const released: string[] = [];
  const stops: Error[] = [];
  const controller = new AbortController();
  const window = createHeldWindow(
    {
      check: (texts, { signal } = {}) =>
        new Promise((resolve, reject) => {
          if (signal === undefined) throw new Error('A check has no signal');
          signal.addEventListener('abort', () => {
            reject(new Error('aborted'));
          });
          const decide = (outcome: ModerationVerdict | Error) => {
            if (outcome instanceof Error) reject(outcome);
            else resolve(outcome);
          };
          checks.push({ text: String(texts), decide, signal });
        }),
    },
    DEFAULT_MODERATION_POLICY,
    { signal: controller.signal, release: (text) => released.push(text), stop: (reason) => stops.push(reason) },
  );
  const decide = async (outcome: ModerationVerdict | Error = PASSED) => {
    checks.at(-1)?.decide(outcome);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { window, checks, released, stops, controller, decide };
}

describe('the window of a remote backend', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('asks for 200 characters at once, and shows them when they have passed', async () => {
    const { window, checks, released, decide } = openLab();

    window.push(HUNDRED);
    expect(checks).toEqual([]);
    window.push(HUNDRED);

    expect(checks.map(({ text }) => text)).toEqual([HUNDRED + HUNDRED]);
    expect(released).toEqual([]);
    await decide();
    expect(released).toEqual([HUNDRED + HUNDRED]);
  });

  it('the window of a remote backend asks for less after half a second', async () => {
    const { window, checks, released, decide } = openLab();

    window.push('slow ');
    await jest.advanceTimersByTimeAsync(499);
    window.push('words');
    expect(checks).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);

    expect(checks.map(({ text }) => text)).toEqual(['slow words']);
    await decide();
    expect(released).toEqual(['slow words']);
  });

  it('asks once at a time, keeps the order, and reads again only the end of what has passed', async () => {
    const { window, checks, released, decide } = openLab();
    const parts = ['a', 'b', 'c'].map((letter) => letter.repeat(1_500));

    for (const part of parts) window.push(part);
    expect(checks).toHaveLength(1);
    await decide();

    expect(checks.map(({ text }) => text)).toEqual([
      'a'.repeat(1_500),
      'a'.repeat(1_000) + 'b'.repeat(1_500) + 'c'.repeat(1_500),
    ]);
    await decide();
    expect(released).toEqual(['a'.repeat(1_500), 'b'.repeat(1_500) + 'c'.repeat(1_500)]);
  });

  it.each([
    ['with its last piece', 'rest'],
    ['by itself, where nothing is left to show', ''],
  ])('reads the whole answer at its end, %s, and flags it even then', async (_when, rest) => {
    const { window, checks, released, stops, decide } = openLab();
    const parts = ['a', 'b'].map((letter) => letter.repeat(1_500));
    for (const part of parts) {
      window.push(part);
      await decide();
    }
    window.push(rest);
    const ended = window.end();
    await decide(FLAGGED);
    await ended;

    expect(checks.at(-1)?.text).toBe(parts.join('') + rest);
    expect(released).toEqual(parts);
    expect(stops).toEqual([expect.objectContaining({ name: 'FlaggedError' })]);
  });

  it('reads a short answer once', async () => {
    const { window, checks, decide } = openLab();
    window.push(HUNDRED + HUNDRED);
    await decide();

    await window.end();

    expect(checks).toHaveLength(1);
  });

  it('that has waited long enough during a check is asked for right after it', async () => {
    const { window, checks, decide } = openLab();
    window.push(HUNDRED + HUNDRED);
    window.push('short');
    await jest.advanceTimersByTimeAsync(600);

    await decide();
    expect(checks).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(500);

    expect(checks).toHaveLength(2);
  });

  it('shows nothing of a flagged piece and nothing after it, and asks no more', async () => {
    const { window, checks, released, stops, decide } = openLab();
    window.push(HUNDRED + HUNDRED);
    await decide();
    window.push(HUNDRED + HUNDRED);
    window.push(HUNDRED + HUNDRED);
    const ended = window.end();

    await decide(FLAGGED);
    await ended;
    window.push('more');
    await jest.advanceTimersByTimeAsync(1_000);

    expect(released).toHaveLength(1);
    expect(stops).toEqual([expect.objectContaining({ name: 'FlaggedError', verdict: FLAGGED })]);
    expect(stops[0]).toBeInstanceOf(FlaggedError);
    expect(checks).toHaveLength(2);
  });

  it('the window of a remote backend never cuts a character in two', async () => {
    const { window, checks, released, decide } = openLab();
    const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)];

    window.push(HUNDRED + HUNDRED + high);
    expect(checks.at(-1)?.text).toBe(HUNDRED + HUNDRED);
    await decide();
    window.push(low);
    const ended = window.end();
    await decide();
    await ended;

    expect(released).toEqual([HUNDRED + HUNDRED, '😀']);
  });

  it('ends its check and shows nothing when it is closed', async () => {
    const { window, checks, released, stops, controller } = openLab();
    window.push(HUNDRED + HUNDRED);

    window.close();
    await jest.advanceTimersByTimeAsync(1_000);

    expect(checks[0]?.signal.aborted).toBe(true);
    expect([released, stops]).toEqual([[], []]);
    expect(listenersOf(controller.signal)).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('stops with the reason of the call when that is aborted', async () => {
    const { window, stops, controller } = openLab();
    const reason = new Error('cancelled by the caller');
    window.push('held');
    const ended = window.end();

    controller.abort(reason);
    await ended;

    expect(stops).toEqual([reason]);
  });
});
