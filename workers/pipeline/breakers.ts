/**
 * Circuit breakers: one for each provider, shared by all workers. The rules are pure transitions in
 * shared/domain/breaker.ts; Lua only compares and sets (docs/decisions/0010-circuit-breaker.md).
 *
 * A call to a healthy provider reads a variable and counts in the process (circuit.ts). The first failure goes to Redis
 * and is published: all workers then send what they counted in the window, and after 250 ms the reporting worker
 * decides. A probe has a lease of 10 s, renewed while its call runs. While Redis is away each worker goes on by itself,
 * by the same rules, and takes over the fleet's state afterwards.
 */
import type { Breaker } from '../../shared/domain/breaker.ts';
import { NEW_BREAKER } from '../../shared/domain/breaker.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { BreakerStore } from '../../shared/redis/stores/breaker-store.ts';
import { createBriefCalls, inTime } from '../../shared/redis/time-limits.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { repeat } from '../../shared/lifecycle/clock.ts';
import { classifyFailure } from './failure-class.ts';
import { createCircuit } from './circuit.ts';
import type { Circuit, CircuitDeps } from './circuit.ts';

export interface CreateBreakersDeps {
  store: Pick<BreakerStore, 'change' | 'readAll'>;
  /** Subscribes to the changes of all workers; `onMissed` says that something may have been lost. */
  listen(onChange: (provider: string, breaker: Breaker) => void, onMissed: () => void): Promise<void>;
  workerId: string;
  events: CircuitDeps['events'];
  clock: Clock;
  log: Logger;
  /** How long a call of Redis is waited for, in milliseconds; longer in tests of what workers decide together. */
  callMs?: number;
}

/** The circuit breakers of all providers, as one worker sees them. */
export interface Breakers {
  /**
   * Makes a call of `provider` that counts; `onText` is to be called when its text begins. Throws BreakerOpenError
   * where the breaker lets no call through, else what the call throws.
   */
  guard<T>(provider: Provider, call: (onText: () => void) => Promise<T>): Promise<T>;
  isPassable(provider: Pick<Provider, 'name'>): boolean;
  /** Whether its calls go through without being a probe. */
  isClosed(provider: Pick<Provider, 'name'>): boolean;
  stop(): Promise<void>;
}

/** All workers honour an open breaker within 1 s, even if the message is lost (docs/spec.md#breaker). */
const READ_MS = 900;
/** Requests may wait for these calls. Without an answer this worker decides alone. */
const CALL_MS = 1_000;

export async function createBreakers(deps: CreateBreakersDeps): Promise<Breakers> {
  const { store, listen, workerId, events, clock, log, callMs = CALL_MS } = deps;
  const circuits = new Map<string, Circuit>();
  const versions = new Map<string, number>();
  let offsetMs = 0;
  let probes = 0;
  let alone = false;
  const [changes, reads] = [createBriefCalls(callMs), createBriefCalls(callMs)];

  const now = () => clock.now() + offsetMs;

  function adopt(provider: string, breaker: Breaker): void {
    versions.set(provider, breaker.version);
    circuitOf(provider).adopt(breaker);
  }

  async function change(provider: string, next: (current: Breaker, time: number) => Breaker): Promise<Breaker> {
    // If Redis makes the change after this worker has decided alone, the change must not happen twice.
    let isLate = false;
    const once = (current: Breaker, time: number) => (isLate ? current : next(current, time));
    try {
      const { breaker } = await changes.make(() => store.change(provider, once));
      versions.set(provider, breaker.version);
      return breaker;
    } catch (error) {
      isLate = true;
      noteAlone(error);
      throw error;
    }
  }

  function circuitOf(provider: string): Circuit {
    const known = circuits.get(provider);
    if (known !== undefined) return known;
    const circuit = createCircuit({
      provider,
      classify: classifyFailure,
      now,
      newHolder: () => `${workerId}:${(probes += 1)}`,
      events,
      change: (next) => change(provider, next),
    });
    circuits.set(provider, circuit);
    return circuit;
  }

  function noteAlone(error: unknown): void {
    if (!alone)
      log.warn('The circuit breakers cannot be shared; this worker goes by its own until they can.', { error });
    alone = true;
  }

  async function read(): Promise<void> {
    const snapshot = await reads.make(store.readAll);
    offsetMs = snapshot.now - clock.now();
    // A server that takes no writes can be read; this worker has decided since without it.
    if (changes.isWaiting()) return;
    if (alone) log.info('The circuit breakers are shared again.');
    alone = false;
    for (const provider of circuits.keys()) {
      if (!snapshot.breakers.has(provider)) adopt(provider, NEW_BREAKER);
    }
    for (const [provider, breaker] of snapshot.breakers) adopt(provider, breaker);
  }

  const listening = listen(
    (provider, breaker) => {
      // Messages have their own connection, so this one may be older than what was read since.
      if (breaker.version > (versions.get(provider) ?? 0)) adopt(provider, breaker);
    },
    () => {
      read().catch(noteAlone);
    },
  );
  // One master of a cluster may be away for long: until the breakers are there, this worker goes by its own.
  await Promise.all([inTime(listening, callMs), read()]).catch(noteAlone);
  const reading = repeat(
    async () => {
      await read();
      for (const circuit of circuits.values()) circuit.tick();
    },
    () => READ_MS,
    noteAlone,
  );

  return {
    guard: (provider, call) => circuitOf(provider.name).guard(provider.breaker, call),
    isPassable: ({ name }) => circuitOf(name).isPassable(),
    isClosed: ({ name }) => circuitOf(name).isClosed(),
    async stop() {
      for (const circuit of circuits.values()) circuit.stop();
      await reading.stop();
    },
  };
}
