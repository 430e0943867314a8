import { endsInHalfCharacter } from '../text-units.ts';
import type { LocalModerator } from './local-moderator.ts';
import { addScores } from './scan-text.ts';
import {
  DEFAULT_MODERATION_POLICY,
  FlaggedError,
  type ModerationPolicy,
  type ModerationVerdict,
  type OutputWindow,
  type WindowListener,
  judge,
  reachesThreshold,
} from '../moderator.ts';

interface WindowStep {
  /** Text that may be shown; empty while everything new is held back. */
  readonly release: string;
  /** Set once a phrase has been flagged: `release` ends before the phrase, and nothing follows. */
  readonly flagged?: ModerationVerdict;
}

/** UTF-16 units: with half a character that waits for its other half 64, the limit of docs/spec.md#moderation. */
const REMEMBERED_MAX = 63;

function createHeldText() {
  let held = '';
  let heldStart = 0;
  /** The first half of a character whose second half has not arrived yet; not part of `held`. */
  let halfCharacter = '';

  return {
    /** Returns the part of the answer that is whole by now. */
    add(delta: string): string {
      const text = halfCharacter + delta;
      const whole = endsInHalfCharacter(text) ? text.length - 1 : text.length;
      halfCharacter = text.slice(whole);
      const added = text.slice(0, whole);
      held += added;
      return added;
    },
    /** Adds the half of a character whose other half never came. */
    addHalf(): string {
      held += halfCharacter;
      return halfCharacter;
    },
    /** Releases what lies before a position of the answer, in whole characters. */
    releaseUntil(position: number): string {
      let count = Math.max(0, position - heldStart);
      if (splitsCharacter(held, count)) count += 1;
      const release = held.slice(0, count);
      held = held.slice(count);
      heldStart += release.length;
      return release;
    },
  };
}

/**
 * Holds back the tail of a streamed answer that may begin a flagged phrase, and nothing else. The result does not
 * depend on how the answer is cut into deltas. A delta takes time proportional to its length plus the held tail's. A
 * phrase longer than 64 units is still flagged, but its beginning may have been released already.
 */
export function createPhraseWindow(moderator: LocalModerator, policy: ModerationPolicy = DEFAULT_MODERATION_POLICY) {
  const held = createHeldText();
  let cut: { readonly at: number; readonly verdict: ModerationVerdict } | undefined;
  let over = false;

  const scores: Record<string, number> = {};
  const scanner = moderator.openScanner((match, at) => {
    addScores(scores, match.group.categories, match.score);
    if (!match.group.categories.some((category) => reachesThreshold(policy, category, match.score))) return false;
    // The same position however the answer was cut into deltas: text before the window may have been released already.
    cut = { at: Math.max(match.start, at - REMEMBERED_MAX), verdict: judge(scores, policy) };
    return true;
  });

  function step(safeUntil: number): WindowStep {
    if (cut === undefined) return { release: held.releaseUntil(safeUntil) };
    const release = over ? '' : held.releaseUntil(cut.at);
    over = true;
    return { release, flagged: cut.verdict };
  }

  return {
    push(delta: string): WindowStep {
      if (over) return step(0);
      scanner.write(held.add(delta));
      return step(Math.max(scanner.heldFrom(), scanner.length - REMEMBERED_MAX));
    },
    end(): WindowStep {
      if (over) return step(0);
      scanner.write(held.addHalf());
      scanner.end();
      const last = step(scanner.length);
      over = true;
      return last;
    },
  };
}

function splitsCharacter(text: string, index: number): boolean {
  return index > 0 && index < text.length && (text.codePointAt(index - 1) ?? 0) > 0xffff;
}

export function openLocalWindow(
  moderator: LocalModerator,
  policy: ModerationPolicy | undefined,
  { release, stop }: WindowListener,
): OutputWindow {
  const phrases = createPhraseWindow(moderator, policy);
  let over = false;

  function take(step: WindowStep): void {
    if (step.release !== '') release(step.release);
    if (step.flagged === undefined) return;
    over = true;
    stop(new FlaggedError(step.flagged));
  }

  return {
    push(delta) {
      if (!over) take(phrases.push(delta));
    },
    end() {
      if (!over) take(phrases.end());
      return Promise.resolve();
    },
    close() {
      over = true;
    },
  };
}
