/**
 * Calls that each provider and model is sent at once: one state for the fleet, shared like a breaker's
 * (docs/decisions/0010-circuit-breaker.md). A worker holds a share of the ceiling (own-share.ts), and reports what it
 * has seen while it has calls in flight, so a call needs no call of Redis. `look` tells a queue's worker how many
 * requests it may take, and of which tiers none.
 */
import { TIERS } from '../../shared/contracts/chat-request.ts';
import type { Tier } from '../../shared/contracts/chat-request.ts';
import type { QueueName } from '../../shared/contracts/jobs.ts';
import { sumOf } from '../../shared/domain/capacity.ts';
import type { Capacity } from '../../shared/domain/capacity.ts';
import type { Provider, RoutingTable, Target } from '../../shared/domain/routing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { CapacityOf } from '../../shared/redis/stores/capacity-store.ts';
import { inTime } from '../../shared/redis/time-limits.ts';
import { ProviderError } from '../providers/provider.ts';
import type { Breakers } from './breakers.ts';
import { UNLIMITED, createOwnShare } from './own-share.ts';
import type { OwnShare, OwnShareDeps } from './own-share.ts';
import type { Seat, SeatCall, SeatEnd, SeenLimits } from './seats.ts';

/** Room at the providers of the requests in a queue. */
export interface Room {
  /** 0: for nothing. */
  most: number;
  /** The tiers that are open and have room for less than was asked for. */
  limiting: readonly Tier[];
  /** The tiers whose providers are full. */
  closed: readonly Tier[];
}

export interface QueueRoom {
  look(most: number): Promise<Room>;
  /** Requests that were taken hold room until they are `placed`: have a place at a provider, wait for one there, or end. */
  took(count: number, room: Room): void;
  placed(count: number): void;
  /** Resolves when there may be more room. */
  changed(): Promise<void>;
}

interface Route {
  target: Target;
  provider: Provider;
}

export interface CapacitiesDeps extends Pick<OwnShareDeps, 'store' | 'workerId' | 'clock'> {
  routing: { current(): RoutingTable };
  breakers: Breakers;
  log: Logger;
}

interface WaitTerms {
  isBatch: boolean;
  /** Ends the wait; its reason is thrown. */
  signal: AbortSignal;
  /** True if another target of the same priority has a free place, so that waiting here is in vain. */
  hasRoomBeside: () => boolean;
}

/**
 * Lets calls wait for their provider (docs/decisions/0010-circuit-breaker.md). A worker takes a request out of the
 * queue only if a target of its tier has a free place, so the others wait there, in order. A call for which no place
 * could be foreseen, such as a second try or one of another target, waits here.
 */
export type Capacities = ReturnType<typeof createCapacities>;

interface Waiter extends Omit<WaitTerms, 'signal'> {
  shares: readonly OwnShare[];
  seat(): void;
  leave(): void;
}

interface SharesDeps extends Omit<CapacitiesDeps, 'breakers'>, Pick<OwnShareDeps, 'unplaced' | 'onChange'> {}

/** A request may wait this long for the first answer of Redis about a provider. */
const FIRST_REPORT_MS = 1_000;

function joined(seats: readonly Seat[]): Seat {
  const [only] = seats;
  if (seats.length === 1 && only !== undefined) return only;
  return {
    recordText: () => {
      for (const seat of seats) seat.recordText();
    },
    recordLimits: (limits: SeenLimits) => {
      for (const seat of seats) seat.recordLimits(limits);
    },
    leave: (end: SeatEnd) => {
      for (const seat of seats) seat.leave(end);
    },
  };
}

function targetsWith({ provider, model }: CapacityOf, { providers, tiers }: RoutingTable): Target[] {
  const all = providers.has(provider) ? Object.values(tiers).flatMap(({ targets }) => targets) : [];
  return all.filter((target) => target.provider === provider && (model === undefined || target.model === model));
}

/** Undefined: it is found. */
function ceilingOf(of: CapacityOf, table: RoutingTable): number | undefined {
  const whole = table.providers.get(of.provider)?.maxInFlight;
  if (of.model === undefined) return whole;
  const own = targetsWith(of, table).find(({ maxInFlight }) => maxInFlight !== undefined);
  return own?.maxInFlight ?? (whole === undefined ? undefined : UNLIMITED);
}

/** None where Redis has said nothing yet, or a provider as a whole has no ceiling. */
function figuresOf(of: CapacityOf, known: Capacity | undefined, set: number | undefined) {
  if (known === undefined || (of.model === undefined && set === undefined)) return [];
  const source = set === undefined ? ('found' as const) : ('set' as const);
  // A model whose provider as a whole has a ceiling has none of its own.
  const bound = set === UNLIMITED ? undefined : { calls: set ?? known.found, source };
  return [{ ...of, inFlight: sumOf(known.shares, 'inFlight'), ceiling: bound }];
}

/** Each target has a share, and each provider that has a ceiling as a whole. */
function createShares({ routing, log, ...deps }: SharesDeps) {
  const shares = new Map<string, OwnShare & { of: CapacityOf }>();
  let isAway = false;

  function shareOf(of: CapacityOf): OwnShare {
    const name = of.model === undefined ? of.provider : `${of.provider} ${of.model}`;
    const known = shares.get(name);
    if (known !== undefined) return known;
    const own = createOwnShare({
      ...deps,
      of,
      ceiling: () => ceilingOf(of, routing.current()),
      onReport() {
        isAway = false;
      },
      onFailure(error) {
        if (!isAway)
          log.warn('The capacities of providers cannot be shared; this worker goes on with its part.', { error });
        isAway = true;
      },
    });
    const share = { ...own, of };
    shares.set(name, share);
    return share;
  }

  function ofRoute({ target: { model }, provider: { name: provider, maxInFlight } }: Route): OwnShare[] {
    const own = shareOf({ provider, model });
    return maxInFlight === undefined ? [own] : [shareOf({ provider, model: undefined }), own];
  }

  const freeAt = (route: Route) => Math.min(...ofRoute(route).map((share) => share.free()));
  return {
    ofRoute,
    ofRoutes: (routes: readonly Route[]): OwnShare[] => routes.flatMap(ofRoute),
    freeAt,

    /** A place at a provider counts once, however many of its models are targets. */
    freeAtAll(routes: readonly Route[]): number {
      const byProvider = new Map<string, number>();
      for (const route of routes) {
        const { name, maxInFlight } = route.provider;
        const [whole] = maxInFlight === undefined ? [] : ofRoute(route);
        const sum = (byProvider.get(name) ?? 0) + freeAt(route);
        byProvider.set(name, whole === undefined ? sum : Math.min(sum, whole.free()));
      }
      return [...byProvider.values()].reduce((sum, places) => sum + places, 0);
    },

    /** Waits for Redis's first answer about those of which there is none yet. */
    async known(all: readonly OwnShare[]): Promise<void> {
      const unknown = all.filter((share) => !share.isKnown());
      if (unknown.length === 0) return;
      await inTime(Promise.all(unknown.map((share) => share.renew())), FIRST_REPORT_MS).catch(() => undefined);
    },

    figures() {
      const table = routing.current();
      const called = Array.from(shares.values()).filter(({ of }) => targetsWith(of, table).length > 0);
      return called.flatMap(({ of, capacity }) => figuresOf(of, capacity(), ceilingOf(of, table)));
    },

    async stop(): Promise<void> {
      await Promise.all(Array.from(shares.values(), (share) => share.stop()));
    },
  };
}
type Shares = ReturnType<typeof createShares>;

/** The targets that a tier's next request would be sent to: a lower priority is for faults, not for what is full. */
function createNextRoutes({ routing, breakers }: CapacitiesDeps) {
  /** Every take asks for them, and the table changes seldom. */
  const tables = new WeakMap<RoutingTable, Record<Tier, Route[]>>();

  function routesOf(tier: Tier): Route[] {
    const table = routing.current();
    const known = tables.get(table);
    if (known !== undefined) return known[tier];
    const all = (name: Tier) =>
      (table.tiers[name]?.targets ?? []).flatMap((target) => {
        const provider = table.providers.get(target.provider);
        return provider === undefined ? [] : [{ target, provider }];
      });
    // Object.fromEntries loses the names.
    const made = Object.fromEntries(TIERS.map((name) => [name, all(name)])) as Record<Tier, Route[]>;
    tables.set(table, made);
    return made[tier];
  }

  return (tier: Tier): Route[] => {
    const routes = routesOf(tier).filter(({ provider }) => breakers.isPassable(provider));
    if (routes.length < 2) return routes;
    const first = Math.min(...routes.map(({ target }) => target.priority));
    const group = routes.filter(({ target }) => target.priority === first);
    const weighted = group.filter(({ target }) => target.weight > 0);
    return weighted.length > 0 ? weighted : group;
  };
}

/** Calls that wait in this worker for a place at their target, interactive ones first. */
function createWaiters() {
  const waiters: Waiter[] = [];
  let isServing = false;

  function serve(): void {
    if (isServing || waiters.length === 0) return;
    isServing = true;
    for (const isBatch of [false, true]) {
      for (const waiter of waiters.filter((one) => one.isBatch === isBatch)) {
        const isFull = waiter.shares.some((share) => share.free() === 0);
        if (isFull && !waiter.hasRoomBeside()) continue;
        waiters.splice(waiters.indexOf(waiter), 1);
        if (isFull) waiter.leave();
        else waiter.seat();
      }
    }
    isServing = false;
  }

  return {
    serve,
    isEmpty: (): boolean => waiters.length === 0,

    countAt(shares: readonly OwnShare[]): number {
      if (waiters.length === 0) return 0;
      const at = new Set(shares);
      return waiters.filter((waiter) => waiter.shares.some((share) => at.has(share))).length;
    },

    /** Waits for a place; `take` takes it at once. Rejects with what `full` makes once another target has one sooner. */
    wait(
      shares: readonly OwnShare[],
      { isBatch, signal, hasRoomBeside }: WaitTerms,
      take: () => Seat,
      full: () => ProviderError,
    ): Promise<Seat> {
      const want = () => {
        for (const share of shares) share.want();
      };
      want();
      return new Promise((resolve, reject) => {
        const hunger = setInterval(want, FIRST_REPORT_MS / 2);
        hunger.unref();
        function end(): void {
          clearInterval(hunger);
          signal.removeEventListener('abort', stop);
        }
        const waiter: Waiter = {
          shares,
          isBatch,
          hasRoomBeside,
          seat() {
            end();
            resolve(take());
          },
          leave() {
            end();
            reject(full());
          },
        };
        function stop(): void {
          clearInterval(hunger);
          waiters.splice(waiters.indexOf(waiter), 1);
          reject(signal.reason instanceof Error ? signal.reason : new Error('The wait for a place was ended'));
        }
        signal.addEventListener('abort', stop, { once: true });
        waiters.push(waiter);
        serve();
      });
    },
  };
}

interface RoomsDeps {
  shares: Shares;
  nextRoutes: (tier: Tier) => Route[];
  waiters: ReturnType<typeof createWaiters>;
  unplaced: { count: number };
  onChange: () => void;
  changed: () => Promise<void>;
}

function createRooms({ shares, nextRoutes, waiters, unplaced, onChange, changed }: RoomsDeps) {
  /** By queue: tiers of which requests may wait. */
  const waitingTiers = new Map<object, Set<Tier>>();
  const mayWait = (tier: Tier) => [...waitingTiers.values()].some((tiers) => tiers.has(tier));

  /**
   * Counts the requests of the tier that may be taken. `expected`: those taken before that may still ask for a place there.
   * Infinity: none of its targets can be called, so they fail at once.
   */
  function freeFor(routes: readonly Route[], expected: number): number {
    if (routes.length === 0) return Infinity;
    return Math.max(0, shares.freeAtAll(routes) - waiters.countAt(shares.ofRoutes(routes)) - expected);
  }

  return (queue: QueueName): QueueRoom => {
    const isBatch = queue === 'batch';
    const waiting = new Set<Tier>();
    if (!isBatch) waitingTiers.set(waiting, waiting);
    return {
      async look(most) {
        const tiers = TIERS.map((tier) => ({ tier, routes: nextRoutes(tier) }));
        await shares.known(tiers.flatMap(({ routes }) => shares.ofRoutes(routes)));
        const busy = tiers.filter(({ routes }) => shares.ofRoutes(routes).some((share) => share.isBusy()));
        let free = most;
        const closed: Tier[] = [];
        const limiting: Tier[] = [];
        for (const { tier, routes } of tiers) {
          // An idle tier, whose ceiling nothing has raised, must not make the others' requests come in small numbers.
          const isIdle = busy.length > 0 && busy.every((one) => one.tier !== tier);
          const places = isBatch && mayWait(tier) ? 0 : freeFor(routes, isIdle ? 0 : unplaced.count);
          if (places > 0) {
            if (places < most && !isIdle) limiting.push(tier);
            free = Math.min(free, places);
            continue;
          }
          closed.push(tier);
          for (const share of shares.ofRoutes(routes)) share.want();
        }
        if (!isBatch) for (const tier of closed) waiting.add(tier);
        return { most: closed.length === tiers.length ? 0 : free, limiting, closed };
      },
      took(count, { most, limiting, closed }) {
        unplaced.count += count;
        const mayBeMore = count === most;
        if (mayBeMore) for (const share of shares.ofRoutes(limiting.flatMap(nextRoutes))) share.want();
        if (isBatch) return;
        for (const tier of TIERS.filter((one) => !closed.includes(one))) {
          if (mayBeMore) waiting.add(tier);
          // Batches may have what is left.
          else if (waiting.delete(tier)) onChange();
        }
      },
      placed(count) {
        unplaced.count -= count;
        onChange();
      },
      changed,
    };
  };
}

export function createCapacities(deps: CapacitiesDeps) {
  let changes: PromiseWithResolvers<void> | undefined;
  function onChange(): void {
    waiters.serve();
    changes?.resolve();
    changes = undefined;
  }

  const waiters = createWaiters();
  const unplaced = { count: 0 };
  const shares = createShares({ ...deps, unplaced: () => unplaced.count, onChange });
  const changed = () => (changes ??= Promise.withResolvers()).promise;

  return {
    roomOf: createRooms({ shares, nextRoutes: createNextRoutes(deps), waiters, unplaced, onChange, changed }),

    /** Takes a place at the target, as soon as there is one. Throws a `full` fault once another target has one sooner. */
    async enter(route: Route, { isBatch, signal, hasRoomBeside, ...call }: SeatCall & WaitTerms): Promise<Seat> {
      const own = shares.ofRoute(route);
      if (own.some((share) => !share.isKnown())) await shares.known(own);
      signal.throwIfAborted();
      const take = () => joined(own.map((share) => share.take(call)));
      if (waiters.isEmpty() && own.every((share) => share.free() > 0)) return take();
      const full = () =>
        new ProviderError('full', `${route.provider.name} has no free place, and another target has one`);
      if (hasRoomBeside()) throw full();
      return waiters.wait(own, { isBatch, signal, hasRoomBeside }, take, full);
    },

    hasPlace: (route: Route): boolean => shares.freeAt(route) > 0,
    isServing: (route: Route): boolean => shares.ofRoute(route).some((share) => share.isServing()),
    seeksCeiling: (route: Route, promptTokens: number): boolean =>
      shares.ofRoute(route).at(-1)?.seeksCeiling(promptTokens) === true,
    figures: shares.figures,
    stop: (): Promise<void> => shares.stop(),
  };
}
