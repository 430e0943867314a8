/**
 * Limits the concurrent calls of a provider, or of one of its models, as pure transitions over one state of all workers
 * (docs/decisions/0010-circuit-breaker.md). An administrator sets the ceiling, or it is found: it grows like TCP's slow
 * start while calls wait for a place and first tokens come as soon as ever, and shrinks by the calls whose first token
 * is late, because those wait inside the provider. Workers lease shares; their sum exceeds the ceiling only by calls
 * that were running when it shrank.
 */
export interface Capacity {
  /** Rises with every write. */
  version: number;
  /** The ceiling that was found; unused while one is set. */
  found: number;
  /** The limit was met once, so the ceiling grows by small steps. */
  isProven: boolean;
  /** Usual first-token time by size of prompt; null: unknown. */
  usualMs: (number | null)[];
  /** First tokens of this epoch took this many times the usual time; null: none has come. */
  slowness: number | null;
  /** The ceiling before it shrank, and how slow first tokens were: shrinking must help, or it was not the cause. */
  before: { found: number; slowness: number } | null;
  /** Rises whenever the ceiling shrinks. Only calls that began since say whether it must again. */
  epoch: number;
  /** First tokens since the ceiling last changed. */
  acks: number;
  /** A proven ceiling does not grow before this time. */
  growAt: number;
  /** Pause before the next step up; longer after each step that went too far. */
  holdMs: number;
  /** The provider asked for a pause until then. */
  pausedUntil: number;
  /** A call last succeeded then; null: none has. */
  servedAt: number | null;
  /** From the provider's headers, per minute; null: they say nothing. */
  requests: Allowance | null;
  tokens: Allowance | null;
  callTokens: number;
  shares: Record<string, Share>;
}

/** Refills evenly within a minute, as a bucket. */
export interface Allowance {
  limit: number;
  level: number;
  at: number;
}

/** Valid until the worker's next report. */
export interface Share {
  /** Calls begin while fewer than these are in flight. */
  places: number;
  inFlight: number;
  used: number;
  pending: number;
  late: number;
  /** Late calls of the epoch. */
  newLate: number;
  waits: boolean;
  /** Granted out of the allowances; null: not limited. */
  requests: number | null;
  tokens: number | null;
  until: number;
}

/** From a provider's headers. */
export interface SeenLimit {
  limit: number;
  /** Undefined: unknown, or too old to be of use. */
  remaining?: number | undefined;
}

/** Counts since the last report. */
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
  /** Pending calls whose first token is late (`lateAfterMs`). */
  late: number;
  /** Late calls of the epoch, and the longest wait of one; milliseconds. */
  newLate: number;
  newLateMs: number;
  epoch: number;
  /** First tokens of calls of that epoch, by size of the prompt: their number, and the sum of their times. */
  firsts: { count: number; ms: number }[];
  /** Calls that succeeded, or began to. */
  served: number;
  /** Refused by the provider as too many, and those of them that began in the epoch. */
  throttled: number;
  newThrottled: number;
  /** The longest wait that the provider asked for. */
  retryAfterMs: number;
  limits: { requests?: SeenLimit; tokens?: SeenLimit };
  /** Taken out of the grants. */
  spent: { requests: number; tokens: number };
  callTokens: number;
}

/** For a cold start: a small server of one's own takes this many, or queues the rest. */
export const FIRST_CEILING = 8;
export const CEILING_MAX = 100_000;

/** Upper ends in tokens. Long prompts take longer to read. */
const SIZES = [256, 1_024, 4_096, 16_384];
export const SIZE_COUNT = SIZES.length + 1;
export function sizeOf(promptTokens: number): number {
  const index = SIZES.findIndex((end) => promptTokens < end);
  return index === -1 ? SIZES.length : index;
}

/** A share that is not renewed within this time returns to the others. */
export const SHARE_MS = 15_000;
/** A provider can ask the whole fleet for this wait at most; one that asks for more counts as unavailable. */
export const PAUSE_MAX_MS = 10_000;
/** A provider that served a call within this time and refuses others with 429 is full, not broken. */
export const SERVING_MS = 5_000;

/** A first token is late after twice the usual time and some more: half a second inside the provider is fine. */
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

/** Tells when the first token of a call is late; Infinity: nothing is known of prompts of its size. */
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

/** A provider that serves calls is not broken, whatever else it refuses. */
export function isServing({ servedAt, shares }: Capacity, now: number): boolean {
  if (servedAt !== null && now - servedAt < SERVING_MS) return true;
  // A call that has its first token is being answered.
  return sumOf(shares, 'inFlight') > sumOf(shares, 'pending');
}
