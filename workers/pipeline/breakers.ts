/**
 * Circuit breakers: one for each provider, shared by all workers. The rules are pure transitions in
 * shared/domain/breaker.ts; Lua only compares and sets (docs/decisions/0010-circuit-breaker.md).
 *
 * A call to a healthy provider reads a variable and counts in the process (circuit.ts). The first failure goes to Redis
 * and is published: all workers then send what they counted in the window, and after 250 ms the reporting worker
 * decides. A probe has a lease of 10 s, renewed while its call runs. While Redis is away each worker goes on by itself,
 * by the same rules, and takes over the fleet's state afterwards.
 */
import { NEW_BREAKER } from '../../shared/domain/breaker.ts';
import type { Breaker } from '../../shared/domain/breaker.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { BreakerStore } from '../../shared/redis/stores/breaker-store.ts';
import { createBriefCalls, inTime } from '../../shared/redis/time-limits.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { classifyFailure, createCircuit } from './circuit.ts';
import type { Circuit, CircuitDeps } from './circuit.ts';

export interface CreateBreakersDeps {
  store: Pick<BreakerStore, 'change' | 'readAll'>;
  /** Subscribes to the changes of all workers; `onMissed` says that something may have been lost. */
  listen(onChange: (provider: string, breaker: Breaker) => void, onMissed: () => void): Promise<void>;
  workerId: string;
  events: CircuitDeps['events'];
  clock: Clock;
  log: Logger;
  /** A call of Redis is waited for this long, in milliseconds; longer in tests of what workers decide together. */
  callMs?: number;
}

/** The circuit breakers of all providers, as one worker sees them. */
export type Breakers = Awaited<ReturnType<typeof createBreakers>>;

/** All workers honour an open breaker within 1 s, even if the message is lost (docs/spec.md#breaker). */
const READ_MS = 900;
/** Requests may wait for these calls. Without an answer this worker decides alone. */
const CALL_MS = 1_000;

/** The states that all workers share, read and changed in Redis; while it does not answer, this worker is alone. */
function createSharedBreakers({ store, clock, log, callMs = CALL_MS }: CreateBreakersDeps) {
  const versions = new Map<string, number>();
  let offsetMs = 0;
  let isAlone = false;
  const [changes, reads] = [createBriefCalls(callMs), createBriefCalls(callMs)];

  function recordAlone(error: unknown): void {
    if (!isAlone)
      log.warn('The circuit breakers cannot be shared; this worker goes by its own until they can.', { error });
    isAlone = true;
  }

  return {
    recordAlone,
    /** Redis's clock. */
    now: (): number => clock.now() + offsetMs,
    /** Messages have their own connection, so one may be older than what was read since. */
    isNews: (provider: string, { version }: Breaker): boolean => version > (versions.get(provider) ?? 0),
    adopt: (provider: string, { version }: Breaker): unknown => versions.set(provider, version),

    async change(provider: string, next: (current: Breaker, time: number) => Breaker): Promise<Breaker> {
      // If Redis makes the change after this worker has decided alone, the change must not happen twice.
      let isLate = false;
      const once = (current: Breaker, time: number) => (isLate ? current : next(current, time));
      try {
        const { breaker } = await changes.make(() => store.change(provider, once));
        versions.set(provider, breaker.version);
        return breaker;
      } catch (error) {
        isLate = true;
        recordAlone(error);
        throw error;
      }
    },

    /** Undefined: a server that takes no writes can be read; this worker has decided since without it. */
    async read(): Promise<ReadonlyMap<string, Breaker> | undefined> {
      const snapshot = await reads.make(store.readAll);
      offsetMs = snapshot.now - clock.now();
      if (changes.isWaiting()) return undefined;
      if (isAlone) log.info('The circuit breakers are shared again.');
      isAlone = false;
      return snapshot.breakers;
    },
  };
}

export async function createBreakers(deps: CreateBreakersDeps) {
  const { listen, workerId, events, callMs = CALL_MS } = deps;
  const shared = createSharedBreakers(deps);
  const circuits = new Map<string, Circuit>();
  let probes = 0;

  function circuitOf(provider: string): Circuit {
    const known = circuits.get(provider);
    if (known !== undefined) return known;
    const circuit = createCircuit({
      provider,
      classify: classifyFailure,
      now: shared.now,
      newHolder: () => `${workerId}:${(probes += 1)}`,
      events,
      change: (next) => shared.change(provider, next),
    });
    circuits.set(provider, circuit);
    return circuit;
  }

  function adopt(provider: string, breaker: Breaker): void {
    shared.adopt(provider, breaker);
    circuitOf(provider).adopt(breaker);
  }

  async function read(): Promise<void> {
    const breakers = await shared.read();
    if (breakers === undefined) return;
    for (const provider of circuits.keys()) {
      if (!breakers.has(provider)) adopt(provider, NEW_BREAKER);
    }
    for (const [provider, breaker] of breakers) adopt(provider, breaker);
  }

  const listening = listen(
    (provider, breaker) => {
      if (shared.isNews(provider, breaker)) adopt(provider, breaker);
    },
    () => {
      read().catch(shared.recordAlone);
    },
  );
  // One master of a cluster may be away for long: until the breakers are there, this worker goes by its own.
  await Promise.all([inTime(listening, callMs), read()]).catch(shared.recordAlone);
  const reading = repeat(
    async () => {
      await read();
      for (const circuit of circuits.values()) circuit.tick();
    },
    () => READ_MS,
    shared.recordAlone,
  );

  return {
    /**
     * Makes a call of `provider` that counts; `onText` is to be called when its text begins. Throws BreakerOpenError
     * where the breaker lets no call through, else what the call throws.
     */
    guard: <T>(provider: Provider, call: (onText: () => void) => Promise<T>): Promise<T> =>
      circuitOf(provider.name).guard(provider.breaker, call),
    isPassable: ({ name }: Pick<Provider, 'name'>): boolean => circuitOf(name).isPassable(),
    /** Whether its calls go through without being a probe. */
    isClosed: ({ name }: Pick<Provider, 'name'>): boolean => circuitOf(name).isClosed(),
    async stop(): Promise<void> {
      for (const circuit of circuits.values()) circuit.stop();
      await reading.stop();
    },
  };
}
