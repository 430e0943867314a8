import type { KeptAs } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';

/** The settings of the service. */
export interface RetentionSettings {
  /** How long Redis keeps an answer. */
  ordinaryMs: number;
  /** How long one is kept that was asked for under an Idempotency-Key or asynchronously. */
  keptMs: number;
}

/** What becomes of a request's answer after its end, and of its body until then. */
export interface RequestRetention {
  retentionMs: number;
  kept: KeptAs | undefined;
  /** The body is kept in MongoDB, too, until the end: a Redis that loses its last second loses no such request. */
  hasIntent: boolean;
}

/** A tenant of whose conversations nothing outlives the answer (docs/spec/contract.md section 8, Retention). */
export function keepsNothing({ retentionSeconds }: Pick<Principal, 'retentionSeconds'>): boolean {
  return retentionSeconds === 0;
}

/**
 * `isKept`: under an Idempotency-Key, or asynchronous. A tenant's own time replaces both of the service's; what is longer
 * than Redis keeps answers is MongoDB's.
 */
export function retentionOf(
  { retentionSeconds }: Pick<Principal, 'retentionSeconds'>,
  isKept: boolean,
  { ordinaryMs, keptMs }: RetentionSettings,
): RequestRetention {
  if (retentionSeconds === undefined)
    return { retentionMs: isKept ? keptMs : ordinaryMs, kept: isKept ? {} : undefined, hasIntent: isKept };
  const ownMs = retentionSeconds * 1000;
  if (ownMs === 0) return { retentionMs: 0, kept: undefined, hasIntent: false };
  if (ownMs <= ordinaryMs)
    return { retentionMs: ownMs, kept: isKept ? { redisOnly: true } : undefined, hasIntent: isKept };
  return {
    retentionMs: isKept ? Math.min(ownMs, keptMs) : ordinaryMs,
    kept: { storedMs: ownMs },
    hasIntent: isKept,
  };
}
