/**
 * How many calls a provider, or one of its models, is sent at once, as pure transitions over one state that all workers
 * share (docs/decisions/0010-circuit-breaker.md). The ceiling is set by an administrator or found: it grows like TCP's
 * slow start while calls wait for a place and first tokens come as soon as ever, and shrinks by the calls whose first
 * token is late, because those wait inside the provider. Workers hold shares of it as leases. The sum of all shares is
 * never above the ceiling, but for calls that were running when the ceiling shrank.
 */
export interface Capacity {
  /** Rises with every write. */
  version: number;
  /** The ceiling that was found; unused while one is set. */
  found: number;
  /** The limit has been met once, so the ceiling grows by small steps. */
  isProven: boolean;
  /** The usual first-token time by size of the prompt; null: unknown. Milliseconds. */
  usualMs: (number | null)[];
  /** How many times the usual time the first tokens of this epoch took; null: none has come. */
  slowness: number | null;
  /** The ceiling before it shrank, and how slow first tokens were: shrinking must help, or it was not the cause. */
  before: { found: number; slowness: number } | null;
  /** Rises whenever the ceiling shrinks. Only calls that began since then say whether it must shrink again. */
  epoch: number;
  /** First tokens since the ceiling last changed. */
  acks: number;
  /** A proven ceiling does not grow before this time. */
  growAt: number;
  /** The pause before the next step up; longer after each step that went too far. */
  holdMs: number;
  /** The provider asked to be left alone until then. */
  pausedUntil: number;
  /** When a call last succeeded; null: none has. */
  servedAt: number | null;
  /** Limits per minute from the provider's headers; null: they say nothing. */
  requests: Allowance | null;
  tokens: Allowance | null;
  /** Mean tokens of a call. */
  callTokens: number;
  /** By worker. */
  shares: Record<string, Share>;
}

/** A provider's limit, as a bucket that refills evenly within a minute. */
export interface Allowance {
  limit: number;
  level: number;
  at: number;
}

/** One worker's share until its next report. */
export interface Share {
  /** Calls are begun while fewer than these are in flight. */
  places: number;
  inFlight: number;
  used: number;
  pending: number;
  late: number;
  /** Those of the epoch. */
  newLate: number;
  waits: boolean;
  /** Granted out of the allowances; null: not limited. */
  requests: number | null;
  tokens: number | null;
  until: number;
}

/** One limit as a provider's headers give it. */
export interface SeenLimit {
  limit: number;
  /** Undefined: unknown, or too old to be of use. */
  remaining?: number | undefined;
}

/** One worker's counts since its last report. */
export interface CapacityReport {
  worker: string;
  /** Calls that have a place. */
  inFlight: number;
  /** Calls that have a place or are about to ask for one. */
  used: number;
  /** More calls would be made if there were places. */
  waits: boolean;
  /** The worker takes no new requests. */
  leaves: boolean;
  /** Calls in flight that have no first token. */
  pending: number;
  /** Those whose first token is late (`lateAfterMs`). */
  late: number;
  /** Those of them that began in the epoch, and the longest that one has waited; milliseconds. */
  newLate: number;
  newLateMs: number;
  /** The epoch that the worker knows. */
  epoch: number;
  /** First tokens of calls of that epoch, by size of the prompt: their number, and the sum of their times. */
  firsts: { count: number; ms: number }[];
  /** Calls that succeeded, or began to. */
  served: number;
  /** Calls that the provider refused because there were too many, and how many of them began in the epoch. */
  throttled: number;
  newThrottled: number;
  /** The longest wait that it asked for. */
  retryAfterMs: number;
  limits: { requests?: SeenLimit; tokens?: SeenLimit };
  /** Taken out of the grants. */
  spent: { requests: number; tokens: number };
  callTokens: number;
}

/** A cold start: a small server of one's own takes this many, or has a queue for the rest. */
export const FIRST_CEILING = 8;
export const CEILING_MAX = 100_000;

/** The upper ends of the sizes of prompts, in tokens. Long prompts take longer to read. */
const SIZES = [256, 1_024, 4_096, 16_384];
export const SIZE_COUNT = SIZES.length + 1;
export function sizeOf(promptTokens: number): number {
  const index = SIZES.findIndex((end) => promptTokens < end);
  return index === -1 ? SIZES.length : index;
}

/** A share that its worker does not renew within this time returns to the others. */
export const SHARE_MS = 15_000;
/** The longest wait that a provider can ask the whole fleet for; one that asks for more is treated as unavailable. */
export const PAUSE_MAX_MS = 10_000;
/** A provider that has served a call within this time is full, not broken, if it refuses others with 429. */
export const SERVING_MS = 5_000;

/** A first token is late after twice the usual time and some more: who waits half a second inside the provider is well there. */
const LATE_TIMES = 2;
const LATE_MORE_MS = 500;
const FIRST_HOLD_MS = 1_000;

export function newCapacity(): Capacity {
  return {
    version: 0,
    found: FIRST_CEILING,
    isProven: false,
    usualMs: Array.from({ length: SIZE_COUNT }, () => null),
    slowness: null,
    before: null,
    epoch: 0,
    acks: 0,
    growAt: 0,
    holdMs: FIRST_HOLD_MS,
    pausedUntil: 0,
    servedAt: null,
    requests: null,
    tokens: null,
    callTokens: 0,
    shares: {},
  };
}

/** When the first token of a call is late; Infinity: nothing is known of prompts of its size. */
export function lateAfterMs({ usualMs }: Capacity, size: number): number {
  const usual = usualMs[size] ?? null;
  return usual === null ? Infinity : usual * LATE_TIMES + LATE_MORE_MS;
}

export function sumOf(
  shares: Record<string, Share>,
  what: 'places' | 'inFlight' | 'used' | 'pending' | 'late' | 'newLate',
): number {
  return Object.values(shares).reduce((sum, share) => sum + share[what], 0);
}

/** Whether the provider serves calls: it is then not broken, whatever else it refuses. */
export function isServing({ servedAt, shares }: Capacity, now: number): boolean {
  if (servedAt !== null && now - servedAt < SERVING_MS) return true;
  // A call that has its first token is being answered.
  return sumOf(shares, 'inFlight') > sumOf(shares, 'pending');
}
