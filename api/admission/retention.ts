import type { KeptAs } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';

/** The settings of the service. */
export interface RetentionSettings {
  /** How long Redis keeps an answer. */
  ordinaryMs: number;
  /** How long an answer is kept under an Idempotency-Key, or if the call is asynchronous. */
  keptMs: number;
}

/** How long a request's answer is kept after its end, and its body until then. */
export interface RequestRetention {
  retentionMs: number;
  kept: KeptAs | undefined;
  /** MongoDB keeps the body, too, until the end: a Redis that loses its last second then loses no request. */
  hasIntent: boolean;
}

/** Whether nothing of the tenant's conversations outlives the answer (docs/spec/contract.md section 8, Retention). */
export function keepsNothing({ retentionSeconds }: Pick<Principal, 'retentionSeconds'>): boolean {
  return retentionSeconds === 0;
}

/**
 * `isKept`: under an Idempotency-Key, or asynchronous. A tenant's own time replaces both times of the service; MongoDB keeps
 * what is to be kept longer than Redis keeps answers.
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
