import type { ScriptReply } from '../scripts.ts';
import type { TimedReply } from '../timely-script.ts';
import { readMark } from '../tenants/move-marks.ts';

/**
 * What admission decided. `load`: Redis lacks the tenant's balance; publish it and try again. `joined`: an earlier call
 * with the same Idempotency-Key made the request. `changed`: the key allows less than when it was looked up. `moved`: the
 * tenant is on another shard; `moving`: on its way there.
 * `tenant_calls`: all keys of the tenant together make too many calls beside chat. `lane`: the queue is full;
 * `lane_share`: this tenant's part of it is. Any other verdict names what refused the request.
 */
export type Verdict =
  | 'admitted'
  | 'void'
  | 'joined'
  | 'revoked'
  | 'changed'
  | 'suspended'
  | 'rpm'
  | 'throttle'
  | 'daily'
  | 'tpm'
  | 'test_tokens'
  | 'test_tokens_in_flight'
  | 'credits'
  | 'credits_in_flight'
  | 'budget'
  | 'budget_in_flight'
  | 'lane'
  | 'lane_share'
  | 'tenant_calls'
  | 'tenant_rpm'
  | 'tenant_tpm'
  | 'unpaid'
  | 'max_in_flight'
  | 'moved'
  | 'moving'
  | 'load';

/** The figures behind the rate-limit headers, as they are after the call. */
export interface WindowFigures {
  requests: number;
  requestsResetMs: number;
  tokens: number;
  tokensResetMs: number;
}

export interface Admission extends WindowFigures {
  verdict: Verdict;
  retryAfterMs: number;
  /** Tokens held for the request. */
  estimateTokens: number;
  /** Place in the order of acceptance within the shard. */
  seq: number;
  /** The server's clock, milliseconds since the epoch. */
  now: number;
  /** With `joined`: the request that runs under the Idempotency-Key, and its body's fingerprint. */
  joined?: { requestId: string; fingerprint: string };
  /** With `moved`: the tenant's shard. */
  movedTo?: number;
}

/** A move takes some seconds. */
const MOVING_RETRY_MS = 2_000;

/** The verdict, and what follows it as numbers; text becomes NaN. Throws on a reply that is no list. */
export function numbersOf(reply: ScriptReply): { verdict: string; numbers: number[] } {
  if (!Array.isArray(reply)) throw new Error('A Redis script gave no list');
  return { verdict: String(reply[0]), numbers: reply.slice(1).map(Number) };
}

/** Position of the server's clock among the numbers of a reply; the verdict `late` has only that number. */
const NOW_AT = 7;

/** Milliseconds since the epoch, by the server's clock. */
export function readTime(reply: ScriptReply): TimedReply {
  const { verdict, numbers } = numbersOf(reply);
  const isLate = verdict === 'late';
  return { isLate, now: numbers[isLate ? 0 : NOW_AT] ?? 0 };
}

/** What admit.lua and count.lua answer. */
export function toAdmission(reply: ScriptReply): Admission {
  const { verdict, numbers } = numbersOf(reply);
  const [
    requests = 0,
    requestsResetMs = 0,
    tokens = 0,
    tokensResetMs = 0,
    retryAfterMs = 0,
    estimateTokens = 0,
    seq = 0,
    now = 0,
  ] = numbers;
  const figures = { requests, requestsResetMs, tokens, tokensResetMs, retryAfterMs, estimateTokens, seq, now };
  // Besides these verdicts, admit.lua and count.lua know `elsewhere`, which is read below.
  const admission: Admission = { ...figures, verdict: verdict as Verdict };
  const text = Array.isArray(reply) ? String(reply[9]) : '';
  if (verdict === 'elsewhere') {
    const movedTo = readMark(text);
    return movedTo === undefined
      ? { ...admission, verdict: 'moving', retryAfterMs: MOVING_RETRY_MS }
      : { ...admission, verdict: 'moved', retryAfterMs: 1_000, movedTo };
  }
  if (verdict !== 'joined') return admission;
  const [requestId = '', fingerprint = ''] = text.split(' ');
  return { ...admission, joined: { requestId, fingerprint } };
}
