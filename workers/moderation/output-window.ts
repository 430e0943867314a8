import type { ModerationVerdict } from './moderator.ts';

/** Where the text of an answer goes once it has passed. */
export interface WindowListener {
  /** Text that may be shown; called in order. */
  release(text: string): void;
  /** Called once at most: a FlaggedError, or why there is no verdict. Nothing is released after it. */
  stop(reason: Error): void;
  /** Ends what is under way. */
  signal: AbortSignal;
}

/** Stands between the answer of a provider and its reader: what goes in comes out when it has passed moderation. */
export interface OutputWindow {
  push(delta: string): void;
  /** The answer is complete. Resolves when everything was released, or stopped. */
  end(): Promise<void>;
  /** Nothing is released any more; safe to call at any time. */
  close(): void;
}

export type OpenWindow = (listener: WindowListener) => OutputWindow;

/** An answer that was cut off by moderation. */
export class FlaggedError extends Error {
  override readonly name = 'FlaggedError';
  readonly verdict: ModerationVerdict;

  constructor(verdict: ModerationVerdict) {
    super(`The answer was flagged (${verdict.categories.join(', ')})`);
    this.verdict = verdict;
  }
}
