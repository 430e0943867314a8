import {
  CEILING_MAX,
  FIRST_CEILING,
  PAUSE_MAX_MS,
  SERVING_MS,
  SHARE_MS,
  isServing,
  sizeOf,
} from '../../shared/domain/capacity.ts';
import type { Capacity, CapacityReport, Share } from '../../shared/domain/capacity.ts';
import { isInUse } from '../../shared/domain/found-ceiling.ts';
import type { CapacityOf, CapacityStore } from '../../shared/redis/stores/capacity-store.ts';
import { createBriefCalls } from '../../shared/redis/time-limits.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { createSeats, noCounts } from './seats.ts';
import type { Seat, SeatCall } from './seats.ts';

export interface OwnShareDeps {
  of: CapacityOf;
  /** Undefined: it is found. */
  ceiling(): number | undefined;
  store: CapacityStore;
  workerId: string;
  clock: Clock;
  /** Requests that were taken and have yet to ask for a place. */
  unplaced(): number;
  /** There may be more places than before. */
  onChange(): void;
  /** After each report: what the metrics show. */
  onReport(capacity: Capacity): void;
  onFailure(error: unknown): void;
}

/** One worker's share of a provider's capacity. A call of the provider needs no call of Redis: reports go by themselves. */
export type OwnShare = ReturnType<typeof createOwnShare>;

/** Between two reports: while requests wait, while calls are in flight, and else. Milliseconds. */
const HUNGRY_MS = 100;
const BUSY_MS = 250;
const IDLE_MS = 5_000;
/** The first request that waits is not kept waiting for long. */
const SOON_MS = 20;
/** With more workers, each reports less often. */
const WORKERS_AT_FULL_PACE = 8;
const AWAY_MS = 1_000;
/** A share of what is not called any more lapses. */
const UNUSED_MS = 300_000;
/** How long a request that had to wait counts. */
const HUNGER_MS = 1_500;
const SEEKING_MS = 5_000;
/** Of a worker that has never reached Redis: as small as a cold start. */
function firstShare(ceiling = FIRST_CEILING): Share {
  const places = Math.min(ceiling, FIRST_CEILING);
  const none = { inFlight: 0, used: 0, pending: 0, late: 0, newLate: 0, until: 0 };
  return { ...none, places, waits: false, requests: null, tokens: null };
}

export function createOwnShare(deps: OwnShareDeps) {
  const { of, store, workerId, clock } = deps;
  const calls = createBriefCalls();
  let capacity: Capacity | undefined;
  let share: Share | undefined;
  let endsAt = 0;
  let offsetMs = 0;
  const seats = createSeats({
    capacity: () => capacity,
    onFull(retryAfterMs) {
      // The whole fleet pauses as soon as it hears of it, and this worker at once.
      if (capacity !== undefined)
        capacity = { ...capacity, pausedUntil: Math.max(capacity.pausedUntil, redisNow() + retryAfterMs) };
      void renew();
    },
    onLeave: deps.onChange,
  });
  /** Of the report that is on its way. */
  let sent = noCounts().spent;
  let reporting: Promise<void> | undefined;
  let sentAt = -Infinity;
  let wantedAt = -Infinity;
  let usedAt = performance.now();
  /** The most places that were in use at once since the last report: short calls are seldom in flight when one is sent. */
  let peak = 0;
  let leaves = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Infinity;

  const now = () => performance.now();
  const redisNow = () => clock.now() + offsetMs;
  const isWanted = () => now() - wantedAt < HUNGER_MS;
  const pauseMs = () => Math.min(PAUSE_MAX_MS, Math.max(0, (capacity?.pausedUntil ?? 0) - redisNow()));
  const isKnown = () => share !== undefined && now() < endsAt;

  function left(what: 'requests' | 'tokens'): number {
    const granted = share?.[what] ?? null;
    return granted === null ? Infinity : granted - seats.spent()[what] - sent[what];
  }

  function free(): number {
    if (share === undefined || !isKnown() || pauseMs() > 0) return 0;
    const byTokens = Math.ceil(left('tokens') / Math.max(1, seats.meanTokens(), capacity?.callTokens ?? 0));
    return Math.max(0, Math.min(share.places - seats.inFlight(), Math.floor(left('requests')), byTokens));
  }

  async function send(): Promise<void> {
    clearTimeout(timer);
    timerAt = Infinity;
    const counts = seats.drain();
    sent = counts.spent;
    sentAt = now();
    const state = seats.state();
    const used = Math.max(peak, state.inFlight + deps.unplaced());
    peak = 0;
    const report: CapacityReport = {
      ...counts,
      ...state,
      worker: workerId,
      used,
      waits: isWanted(),
      leaves,
      epoch: capacity?.epoch ?? 0,
    };
    try {
      const answer = await calls.make(() => store.report(of, report, deps.ceiling()));
      capacity = answer.capacity;
      share = capacity.shares[workerId];
      offsetMs = answer.now - clock.now();
      deps.onReport(capacity);
    } catch (error) {
      // While Redis is away a worker goes on with what it holds: nobody else can be given it.
      seats.giveBack(sent);
      share ??= firstShare(deps.ceiling());
      deps.onFailure(error);
    }
    sent = noCounts().spent;
    endsAt = now() + SHARE_MS;
    reporting = undefined;
    deps.onChange();
    schedule(nextMs());
  }

  function nextMs(): number {
    const workers = Object.keys(capacity?.shares ?? {}).length;
    const slower = Math.max(1, workers / WORKERS_AT_FULL_PACE);
    if (calls.isWaiting()) return AWAY_MS;
    const paused = pauseMs();
    if (paused > 0) return Math.min(paused, AWAY_MS);
    if (isWanted()) return HUNGRY_MS * slower;
    if (seats.inFlight() > 0) return BUSY_MS * slower;
    return now() - usedAt < UNUSED_MS ? IDLE_MS : Infinity;
  }

  /** Sends a report after `ms`, unless one is due before. */
  function schedule(ms: number): void {
    const at = now() + ms;
    if (isStopped || reporting !== undefined || at >= timerAt || ms === Infinity) return;
    clearTimeout(timer);
    timerAt = at;
    timer = setTimeout(() => void renew(), ms);
    timer.unref();
  }

  function renew(): Promise<void> {
    reporting ??= send();
    return reporting;
  }

  return {
    /** How many calls may begin. */
    free,
    /** Has a share that has not run out. */
    isKnown,
    /** Calls are in flight. */
    isBusy: (): boolean => seats.inFlight() > 0,
    /** Reports at once. */
    renew,

    /** A request waits for a place. */
    want(): void {
      const isNews = !isWanted();
      wantedAt = now();
      schedule(isNews ? Math.max(0, sentAt + SOON_MS - now()) : HUNGRY_MS);
    },

    take(call: SeatCall): Seat {
      usedAt = now();
      schedule(BUSY_MS);
      const seat = seats.take(call);
      peak = Math.max(peak, seats.inFlight() + deps.unplaced());
      return seat;
    },

    /** Whether the provider serves calls, and is full rather than broken if it refuses others. */
    isServing: (): boolean =>
      seats.isAnswered(SERVING_MS) || (capacity !== undefined && isServing(capacity, redisNow())),

    /** Whether calls should be streamed although nobody reads them as they come: first tokens show where the ceiling is. */
    seeksCeiling(promptTokens: number): boolean {
      const ceiling = deps.ceiling();
      if (ceiling !== undefined) return false;
      const isUnknown = (capacity?.usualMs[sizeOf(promptTokens)] ?? null) === null;
      const mayGrow = capacity !== undefined && isInUse(capacity);
      return (mayGrow && now() - wantedAt < SEEKING_MS) || (isUnknown && seats.inFlight() > 0);
    },

    async stop(): Promise<void> {
      clearTimeout(timer);
      leaves = true;
      await (reporting ?? (isKnown() ? renew() : undefined));
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** The ceiling of a model whose provider as a whole has one: only rates limit its calls. */
export const UNLIMITED = CEILING_MAX;
