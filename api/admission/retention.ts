import type { AnswerStorage } from '../../shared/contracts/jobs.ts';
import type { Principal } from '../../shared/domain/keys/principal.ts';

/** How long Redis keeps an answer after its end, unless the tenant has set a shorter time. Milliseconds. */
export interface RetentionSettings {
  ordinaryMs: number;
  /** The answer of a request whose caller may come back for it. */
  storedAnswerMs: number;
}

/** How long a request's answer is kept after its end, and its body until then. */
export interface RequestRetention {
  retentionMs: number;
  answerStorage: AnswerStorage | undefined;
  /**
   * Whether MongoDB also keeps the request's body until it has ended (an intent), so that the request survives even if
   * Redis loses its last second.
   */
  hasIntent: boolean;
}

/** Whether nothing of a tenant's conversations may outlive the answer (docs/spec.md#retention). */
export function keepsNothing({ retentionSeconds }: Pick<Principal, 'retentionSeconds'>): boolean {
  return retentionSeconds === 0;
}

/**
 * `callerMayReturn`: the call is asynchronous or has an Idempotency-Key, so its caller may ask for the answer later. A
 * tenant's own retention replaces the service's times. Redis never keeps an answer for longer than the service's times;
 * if the tenant's is longer, MongoDB keeps the answer.
 */
export function retentionOf(
  { retentionSeconds }: Pick<Principal, 'retentionSeconds'>,
  callerMayReturn: boolean,
  { ordinaryMs, storedAnswerMs }: RetentionSettings,
): RequestRetention {
  const serviceMs = callerMayReturn ? storedAnswerMs : ordinaryMs;
  const hasIntent = callerMayReturn;
  if (retentionSeconds === undefined)
    return { retentionMs: serviceMs, answerStorage: callerMayReturn ? {} : undefined, hasIntent };
  const ownMs = retentionSeconds * 1000;
  if (ownMs === 0) return { retentionMs: 0, answerStorage: undefined, hasIntent: false };
  if (ownMs <= ordinaryMs)
    return { retentionMs: ownMs, answerStorage: callerMayReturn ? { redisOnly: true } : undefined, hasIntent };
  // If the caller may not return, Redis keeps the answer for its ordinary time, because the tenant's own is longer.
  return { retentionMs: Math.min(ownMs, serviceMs), answerStorage: { storedMs: ownMs }, hasIntent };
}
