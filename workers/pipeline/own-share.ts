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
import { createSeats } from './seats.ts';
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
  onReport(): void;
  onFailure(error: unknown): void;
}

/** One worker's share of a provider's capacity. A call of the provider needs no call of Redis: reports go by themselves. */
export type OwnShare = ReturnType<typeof createOwnShare>;

/** Milliseconds between two reports: while requests wait, while calls are in flight, and else. */
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
/** A request that had to wait counts this long. */
const HUNGER_MS = 1_500;
const SEEKING_MS = 5_000;
/** Of a worker that has never reached Redis: as small as a cold start. */
function firstShare(ceiling = FIRST_CEILING): Share {
  const places = Math.min(ceiling, FIRST_CEILING);
  const none = { inFlight: 0, used: 0, pending: 0, late: 0, newLate: 0, until: 0 };
  return { ...none, places, waits: false, requests: null, tokens: null };
}

function createHolding({ workerId, clock, ceiling }: OwnShareDeps) {
  let capacity: Capacity | undefined;
  let share: Share | undefined;
  let endsAt = 0;
  let offsetMs = 0;
  const redisNow = () => clock.now() + offsetMs;
  return {
    capacity: (): Capacity | undefined => capacity,
    redisNow,
    pauseMs: (): number => Math.min(PAUSE_MAX_MS, Math.max(0, (capacity?.pausedUntil ?? 0) - redisNow())),
    /** The share, unless it has run out. */
    share: (): Share | undefined => (performance.now() < endsAt ? share : undefined),

    adopt(answer: { capacity: Capacity; now: number }): void {
      capacity = answer.capacity;
      share = capacity.shares[workerId];
      offsetMs = answer.now - clock.now();
      endsAt = performance.now() + SHARE_MS;
    },

    /** While Redis is away a worker goes on with what it holds: nobody else can be given it. */
    keep(): void {
      share ??= firstShare(ceiling());
      endsAt = performance.now() + SHARE_MS;
    },

    /** The fleet pauses as soon as it hears of it, and this worker at once. */
    pause(ms: number): void {
      if (capacity !== undefined)
        capacity = { ...capacity, pausedUntil: Math.max(capacity.pausedUntil, redisNow() + ms) };
    },
  };
}

interface ReporterDeps {
  /** Never rejects. */
  send(): Promise<void>;
  onSent(): void;
  /** Milliseconds until the report after this one; Infinity: none is due. */
  nextMs(): number;
}

function createReporter({ send, onSent, nextMs }: ReporterDeps) {
  let reporting: Promise<void> | undefined;
  let sentAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Infinity;
  let isStopped = false;

  async function report(): Promise<void> {
    clearTimeout(timer);
    timerAt = Infinity;
    sentAt = performance.now();
    await send();
    reporting = undefined;
    onSent();
    schedule(nextMs());
  }

  function renew(): Promise<void> {
    reporting ??= report();
    return reporting;
  }

  /** Sends a report after `ms`, unless one is due before. */
  function schedule(ms: number): void {
    const at = performance.now() + ms;
    if (isStopped || reporting !== undefined || at >= timerAt || ms === Infinity) return;
    clearTimeout(timer);
    timerAt = at;
    timer = setTimeout(() => void renew(), ms);
    timer.unref();
  }

  return {
    renew,
    schedule,
    /** Milliseconds since the last report; Infinity: there is none. */
    ageMs: (): number => performance.now() - sentAt,
    async stop(isLastWanted: boolean): Promise<void> {
      clearTimeout(timer);
      await (reporting ?? (isLastWanted ? renew() : undefined));
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

function createDemand(inFlight: () => number, unplaced: () => number) {
  let wantedAt = -Infinity;
  let usedAt = performance.now();
  /** The most places that were in use at once since the last report: short calls are seldom in flight when one is sent. */
  let peak = 0;
  const inUse = () => inFlight() + unplaced();
  return {
    want: (): void => void (wantedAt = performance.now()),
    isWanted: (withinMs = HUNGER_MS): boolean => performance.now() - wantedAt < withinMs,
    isUsed: (): boolean => performance.now() - usedAt < UNUSED_MS,
    recordUse(): void {
      usedAt = performance.now();
      peak = Math.max(peak, inUse());
    },
    takePeak(): number {
      const used = Math.max(peak, inUse());
      peak = 0;
      return used;
    },
  };
}

interface Parts {
  holding: ReturnType<typeof createHolding>;
  seats: ReturnType<typeof createSeats>;
  demand: ReturnType<typeof createDemand>;
}

function mayShowCeiling({ holding, seats, demand }: Parts, promptTokens: number): boolean {
  const capacity = holding.capacity();
  const isUnknown = (capacity?.usualMs[sizeOf(promptTokens)] ?? null) === null;
  const mayGrow = capacity !== undefined && isInUse(capacity);
  return (mayGrow && demand.isWanted(SEEKING_MS)) || (isUnknown && seats.inFlight() > 0);
}

function freePlaces({ holding, seats }: Parts): number {
  const share = holding.share();
  if (share === undefined || holding.pauseMs() > 0) return 0;
  const left = (what: 'requests' | 'tokens') => (share[what] ?? Infinity) - seats.spent()[what];
  const perCall = Math.max(1, seats.meanTokens(), holding.capacity()?.callTokens ?? 0);
  const granted = Math.min(Math.floor(left('requests')), Math.ceil(left('tokens') / perCall));
  return Math.max(0, Math.min(share.places - seats.inFlight(), granted));
}

function openReports(deps: OwnShareDeps, { holding, seats, demand }: Parts) {
  const { of, store, workerId: worker } = deps;
  const calls = createBriefCalls();
  let leaves = false;

  async function send(): Promise<void> {
    const report: CapacityReport = {
      ...seats.drain(),
      ...seats.state(),
      worker,
      used: demand.takePeak(),
      waits: demand.isWanted(),
      leaves,
      epoch: holding.capacity()?.epoch ?? 0,
    };
    try {
      const answer = await calls.make(() => store.report(of, report, deps.ceiling()));
      holding.adopt(answer);
      deps.onReport();
      seats.settle(true);
    } catch (error) {
      holding.keep();
      deps.onFailure(error);
      seats.settle(false);
    }
  }

  function nextMs(): number {
    if (calls.isWaiting()) return AWAY_MS;
    const paused = holding.pauseMs();
    if (paused > 0) return Math.min(paused, AWAY_MS);
    const workers = Object.keys(holding.capacity()?.shares ?? {}).length;
    const slower = Math.max(1, workers / WORKERS_AT_FULL_PACE);
    if (demand.isWanted()) return HUNGRY_MS * slower;
    if (seats.inFlight() > 0) return BUSY_MS * slower;
    return demand.isUsed() ? IDLE_MS : Infinity;
  }

  const reporter = createReporter({ send, onSent: deps.onChange, nextMs });
  return {
    ...reporter,
    async stop(): Promise<void> {
      leaves = true;
      await reporter.stop(holding.share() !== undefined);
    },
  };
}

export function createOwnShare(deps: OwnShareDeps) {
  const holding = createHolding(deps);
  const seats = createSeats({
    capacity: holding.capacity,
    onFull(retryAfterMs) {
      holding.pause(retryAfterMs);
      void reports.renew();
    },
    onLeave: deps.onChange,
  });
  const demand = createDemand(seats.inFlight, deps.unplaced);
  const parts = { holding, seats, demand };
  const reports = openReports(deps, parts);
  return {
    capacity: holding.capacity,
    free: (): number => freePlaces(parts),
    /** False once the share has run out. */
    isKnown: (): boolean => holding.share() !== undefined,
    isBusy: (): boolean => seats.inFlight() > 0,
    /** Reports at once. */
    renew: reports.renew,

    want(): void {
      const isNews = !demand.isWanted();
      demand.want();
      reports.schedule(isNews ? Math.max(0, SOON_MS - reports.ageMs()) : HUNGRY_MS);
    },

    take(call: SeatCall): Seat {
      reports.schedule(BUSY_MS);
      const seat = seats.take(call);
      demand.recordUse();
      return seat;
    },

    /** True if the provider serves calls, so that it is full rather than broken if it refuses others. */
    isServing(): boolean {
      const capacity = holding.capacity();
      return seats.isAnswered(SERVING_MS) || (capacity !== undefined && isServing(capacity, holding.redisNow()));
    },

    /** True if calls should be streamed although nobody reads them as they come: first tokens show the ceiling. */
    seeksCeiling: (promptTokens: number): boolean =>
      deps.ceiling() === undefined && mayShowCeiling(parts, promptTokens),

    stop: reports.stop,
  };
}

/** The ceiling of a model whose provider as a whole has one: only rates limit its calls. */
export const UNLIMITED = CEILING_MAX;
