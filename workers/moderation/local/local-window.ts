import type { ModerationPolicy } from '../moderator.ts';
import { FlaggedError, type OutputWindow, type WindowListener } from '../output-window.ts';
import type { LocalModerator } from './local-moderator.ts';
import { createPhraseWindow, type WindowStep } from './phrase-window.ts';

/** The window of the word lists: it decides at once, and holds back only what may be the beginning of a phrase. */
export function openLocalWindow(
  moderator: Pick<LocalModerator, 'openScanner'>,
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
