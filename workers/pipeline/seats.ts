import { SIZE_COUNT, lateAfterMs, sizeOf } from '../../shared/domain/capacity.ts';
import type { Capacity, CapacityReport, SeenLimit } from '../../shared/domain/capacity.ts';

export interface SeenLimits {
  requests: SeenLimit | undefined;
  tokens: SeenLimit | undefined;
}

export type SeatEnd =
  { kind: 'served'; tokens: number | undefined } | { kind: 'full'; retryAfterMs: number } | { kind: 'failed' };

export interface Seat {
  recordText(): void;
  recordLimits(limits: SeenLimits): void;
  leave(end: SeatEnd): void;
}

export interface SeatCall {
  promptTokens: number;
  maxTokens: number;
  /** The answer is streamed, so its first token shows how long calls wait inside the provider. */
  isStreamed: boolean;
}

/** Counts of calls since the last report. */
export type SeatCounts = Pick<
  CapacityReport,
  'firsts' | 'served' | 'throttled' | 'newThrottled' | 'retryAfterMs' | 'limits' | 'spent'
>;

export interface SeatsDeps {
  capacity(): Capacity | undefined;
  onFull(retryAfterMs: number): void;
  onLeave(): void;
}

const MEAN_WEIGHT = 0.05;
/** Limits that a provider states long after a call began may be from its beginning. */
const FRESH_MS = 1_000;

interface OpenCall {
  startedAt: number;
  epoch: number;
  size: number;
  isStreamed: boolean;
}

const noCounts = (): SeatCounts => ({
  firsts: Array.from({ length: SIZE_COUNT }, () => ({ count: 0, ms: 0 })),
  served: 0,
  throttled: 0,
  newThrottled: 0,
  retryAfterMs: 0,
  limits: {},
  spent: { requests: 0, tokens: 0 },
});

const meanWith = (mean: number, value: number) => (mean === 0 ? value : mean + (value - mean) * MEAN_WEIGHT);

/** Calls without a first token, in the order in which they began. */
function createPending(capacity: SeatsDeps['capacity']) {
  const pending = new Set<OpenCall>();
  let servedAt = -Infinity;
  const isOfEpoch = ({ epoch }: OpenCall) => epoch === capacity()?.epoch;
  return {
    isOfEpoch,
    add: (call: OpenCall): unknown => pending.add(call),
    count: (): number => pending.size,
    isServedWithin: (ms: number): boolean => performance.now() - servedAt < ms,

    /** A call is no longer pending: `isServed`, the provider has taken it up. */
    end(call: OpenCall, isServed: boolean, counts: SeatCounts): void {
      if (!pending.delete(call) || !isServed) return;
      counts.served += 1;
      servedAt = performance.now();
    },

    late() {
      const all = { late: 0, newLate: 0, newLateMs: 0 };
      const known = capacity();
      if (known === undefined) return all;
      for (const call of pending) {
        const age = performance.now() - call.startedAt;
        if (!call.isStreamed || age <= lateAfterMs(known, call.size)) continue;
        all.late += 1;
        if (!isOfEpoch(call)) continue;
        all.newLate += 1;
        all.newLateMs = Math.max(all.newLateMs, age);
      }
      return all;
    },

    recordFirst(call: OpenCall, counts: SeatCounts): void {
      const first = counts.firsts[call.size];
      if (!call.isStreamed || !pending.has(call) || !isOfEpoch(call) || first === undefined) return;
      first.count += 1;
      first.ms += performance.now() - call.startedAt;
    },
  };
}

/** The calls that one worker has in flight at a provider, or at one of its models. */
export function createSeats({ capacity, onFull, onLeave }: SeatsDeps) {
  let inFlight = 0;
  const pending = createPending(capacity);
  let counts = noCounts();
  /** Of a report that is on its way. */
  let reported = noCounts().spent;
  let meanTokens = 0;
  let meanCompletion = 0;

  return {
    take({ promptTokens, maxTokens, isStreamed }: SeatCall): Seat {
      const epoch = capacity()?.epoch ?? 0;
      const call: OpenCall = { startedAt: performance.now(), epoch, size: sizeOf(promptTokens), isStreamed };
      const estimate = promptTokens + Math.min(maxTokens, meanCompletion === 0 ? maxTokens : meanCompletion);
      inFlight += 1;
      pending.add(call);
      counts.spent.requests += 1;
      counts.spent.tokens += estimate;
      return {
        recordText() {
          pending.recordFirst(call, counts);
          pending.end(call, true, counts);
        },
        recordLimits({ requests, tokens }) {
          const isFresh = performance.now() - call.startedAt < FRESH_MS;
          const seen = ({ limit, remaining }: SeenLimit) => (isFresh ? { limit, remaining } : { limit });
          if (requests !== undefined) counts.limits.requests = seen(requests);
          if (tokens !== undefined) counts.limits.tokens = seen(tokens);
        },
        leave(end) {
          inFlight -= 1;
          if (end.kind === 'served') {
            const tokens = end.tokens ?? estimate;
            counts.spent.tokens += tokens - estimate;
            meanTokens = meanWith(meanTokens, tokens);
            meanCompletion = meanWith(meanCompletion, Math.max(1, tokens - promptTokens));
          }
          pending.end(call, end.kind === 'served', counts);
          if (end.kind === 'full') {
            counts.throttled += 1;
            if (pending.isOfEpoch(call)) counts.newThrottled += 1;
            counts.retryAfterMs = Math.max(counts.retryAfterMs, end.retryAfterMs);
            onFull(end.retryAfterMs);
          }
          onLeave();
        },
      };
    },
    state: () => ({ inFlight, pending: pending.count(), ...pending.late(), callTokens: meanTokens }),
    inFlight: (): number => inFlight,
    /** Returns the counts so far, and begins anew. */
    drain(): SeatCounts {
      const drained = counts;
      counts = noCounts();
      reported = drained.spent;
      return drained;
    },
    /** The report has been answered, or has not arrived. */
    settle(hasArrived: boolean): void {
      if (!hasArrived) counts.spent = this.spent();
      reported = noCounts().spent;
    },
    /** Calls and tokens that Redis has not yet taken off the share. */
    spent: (): SeatCounts['spent'] => ({
      requests: counts.spent.requests + reported.requests,
      tokens: counts.spent.tokens + reported.tokens,
    }),
    meanTokens: (): number => meanTokens,
    /** True while a call is being answered, and `withinMs` after. */
    isAnswered: (withinMs: number): boolean => inFlight > pending.count() || pending.isServedWithin(withinMs),
  };
}
