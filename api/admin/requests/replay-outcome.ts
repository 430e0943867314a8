/** Why a request is not run again. */
export const SKIP_REASONS = {
  account_suspended: 'The account is suspended.',
  budget_exceeded: 'The monthly token budget is used up.',
  entity_deleted: 'Its entity, or the entity’s history, has been deleted since.',
  idempotency_key_reused: 'Its `Idempotency-Key` stands for a later request.',
  insufficient_credits: 'The credits are used up or held.',
  key_expired: 'Its API key has expired.',
  key_revoked: 'Its API key is revoked or gone.',
  limit_reached: 'A limit or the queue has no room now; replay it later.',
  not_replayable: 'It is unknown, has not failed in an outage, has text, has been replayed, or its day is over.',
  nothing_is_kept: 'The tenant keeps nothing of its conversations (`retention_seconds` is 0).',
} as const;
export type SkipReason = keyof typeof SKIP_REASONS;

export type ReplayOutcome = { kind: 'replayed' } | { kind: 'skipped'; reason: SkipReason; retryAfterMs: number };

export const REPLAYED: ReplayOutcome = { kind: 'replayed' };
export const skip = (reason: SkipReason, retryAfterMs = 0): ReplayOutcome => ({
  kind: 'skipped',
  reason,
  retryAfterMs,
});
