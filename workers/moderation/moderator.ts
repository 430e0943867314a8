import type { ModerationSettings } from '../../shared/contracts/space.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

/**
 * The door of moderation. `Moderator` has two backends, `local` and any OpenAI-compatible endpoint
 * (docs/spec.md#moderation); one serves requests and answers.
 *
 * The stage `moderate` reads all that a model would read of a request (pipeline/moderate.ts). An output window reads
 * the answer as it comes: it says what may be shown (`release`) and when nothing more may (`stop`, which aborts the
 * provider's call). The local window decides in the same call, and holds back what may begin a phrase
 * (local/phrase-window.ts). The remote one (held-window.ts) asks about 200 characters, or what there is after 500 ms,
 * with the last 1,000 passed ones; its last check reads the whole answer. It fails closed
 * (docs/decisions/0012-moderation.md).
 */

/** OpenAI's category names, and `test` for the operators' trigger phrase. A remote backend may report others. */
export const MODERATION_CATEGORIES = [
  'hate',
  'harassment',
  'harassment/threatening',
  'self-harm',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'illicit',
  'illicit/violent',
  'test',
] as const;

export type ModerationCategory = (typeof MODERATION_CATEGORIES)[number];

export interface ModerationVerdict {
  readonly flagged: boolean;
  /** The categories that reached their threshold, sorted. */
  readonly categories: readonly string[];
  /** 0 to 1 by category; a missing category scored 0. */
  readonly scores: Readonly<Record<string, number>>;
}

/** A tenant's settings. Scores, thresholds and categories mean the same with every backend. */
export interface ModerationPolicy {
  /** Categories that never flag. `test` always does. */
  readonly disabled: readonly string[];
  /** The score from which a category flags, 0 to 1; a missing category uses `DEFAULT_THRESHOLD`. */
  readonly thresholds: Readonly<Record<string, number>>;
}

type ModerationBackend = 'local' | 'openai';

interface CheckOptions {
  /** Default: `DEFAULT_MODERATION_POLICY`. */
  readonly policy?: ModerationPolicy;
  readonly signal?: AbortSignal;
}

export interface Moderator {
  readonly backend: ModerationBackend;
  /**
   * Gives one verdict over texts that are read separately, each as it is and with line breaks as spaces. Rejects if the
   * backend is down or `signal` aborts.
   */
  check(texts: string | readonly string[], options?: CheckOptions): Promise<ModerationVerdict>;
}

export const DEFAULT_THRESHOLD = 0.5;

export const DEFAULT_MODERATION_POLICY: ModerationPolicy = { disabled: [], thresholds: {} };

/** `isFlagged`: the backend flags it by its own measure, which counts if the tenant has set no threshold. */
export function reachesThreshold(
  policy: ModerationPolicy,
  category: string,
  score: number,
  isFlagged = false,
): boolean {
  if (category === 'test') return score >= DEFAULT_THRESHOLD;
  if (policy.disabled.includes(category)) return false;
  const threshold = policy.thresholds[category];
  if (threshold === undefined && isFlagged) return true;
  // A threshold of 0 must not flag a category that was not seen at all.
  return score > 0 && score >= (threshold ?? DEFAULT_THRESHOLD);
}

const NONE: ReadonlySet<string> = new Set();

export function judge(
  scores: Readonly<Record<string, number>>,
  policy: ModerationPolicy,
  flagged: ReadonlySet<string> = NONE,
): ModerationVerdict {
  const categories = Object.keys(scores)
    .filter((category) => reachesThreshold(policy, category, scores[category] ?? 0, flagged.has(category)))
    .sort();
  return { flagged: categories.length > 0, categories, scores };
}

/** A tenant without settings has the service's default. */
export function policyOf(settings: ModerationSettings | undefined): ModerationPolicy {
  if (settings === undefined) return DEFAULT_MODERATION_POLICY;
  return { disabled: settings.disabled ?? [], thresholds: settings.thresholds ?? {} };
}

export interface WindowListener {
  /** Text that may be shown; called in order. */
  release(text: string): void;
  /** Called at most once, with a FlaggedError or the reason why there is no verdict. Nothing is released after it. */
  stop(reason: Error): void;
  signal: AbortSignal;
}

/** Stands between the answer of a provider and its reader: releases text once it has passed moderation. */
export interface OutputWindow {
  push(delta: string): void;
  /** The answer is complete. Resolves once everything has been released, or the window has been stopped. */
  end(): Promise<void>;
  /** Releases nothing more; safe to call at any time. */
  close(): void;
}

export type OpenWindow = (listener: WindowListener) => OutputWindow;

export class FlaggedError extends Error {
  override readonly name = 'FlaggedError';
  readonly verdict: ModerationVerdict;

  constructor(verdict: ModerationVerdict) {
    super(`The answer was flagged (${verdict.categories.join(', ')})`);
    this.verdict = verdict;
  }
}

/** A backend that is down fails closed (docs/spec.md#moderation). */
export function moderationUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    'model_unavailable',
    'Content moderation is not available at the moment; try again shortly.',
    { cause, retryAfterSeconds: 5 },
  );
}
