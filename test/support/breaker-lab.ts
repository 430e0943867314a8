import { randomBytes } from 'node:crypto';

import { DEFAULT_BREAKER, NEW_BREAKER } from '../../shared/domain/breaker.ts';
import type { Breaker, BreakerChange, BreakerSettings } from '../../shared/domain/breaker.ts';
import type { Provider } from '../../shared/domain/routing.ts';
import { createBreakerStore, listenForBreakers } from '../../shared/redis/stores/breaker-store.ts';
import type { BreakerEvents, BreakerStore } from '../../shared/redis/stores/breaker-store.ts';
import type { ConnectionRole, RedisClient } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { systemClock } from '../../shared/lifecycle/clock.ts';
import { createEventBus } from '../../shared/lifecycle/event-bus.ts';
import { BreakerOpenError, createBreakers } from '../../workers/pipeline/breakers.ts';
import type { Breakers } from '../../workers/pipeline/breakers.ts';
import { ProviderError } from '../../workers/providers/provider.ts';
import { createRecordingLog } from './recording-log.ts';
import { openTestRedis, uniqueName } from './stores.ts';
import { waitFor } from './wait-for.ts';

/** A worker's breakers over connections of its own. */
export interface LabWorker extends Breakers {
  /** How often it has asked Redis for a change. */
  changes(): number;
  log: ReturnType<typeof createRecordingLog>;
}

interface WorkerOptions {
  url?: string;
  /** Hears no messages, so that only reading is left. */
  isDeaf?: boolean;
  /** Milliseconds for which it waits for Redis before it decides alone. */
  callMs?: number;
}

export interface BreakerLab {
  redis: RedisClient;
  store: BreakerStore;
  channel: string;
  /** The key of what the fleet shares. */
  states: string;
  /** Every change, in whichever worker it was made. */
  changes: BreakerChange[];
  startWorker(options?: WorkerOptions): Promise<LabWorker>;
  /** What the fleet shares. */
  shared(provider: Provider): Promise<Breaker>;
  /** Resolves once the shared state is as asked. */
  until(provider: Provider, holds: (breaker: Breaker) => boolean, what: string): Promise<Breaker>;
  close(): Promise<void>;
}

/** A provider with a name of its own; its breaker pauses 300 ms, then 600 ms at most. */
export function providerOf(settings: Partial<BreakerSettings> = {}): Provider {
  return {
    name: `p${randomBytes(4).toString('hex')}`,
    kind: 'openai',
    baseUrl: 'http://127.0.0.1:1/v1',
    timeoutMs: 1_000,
    firstTokenTimeoutMs: 1_000,
    maxRetries: 0,
    breaker: { ...DEFAULT_BREAKER, openMs: 300, maxOpenMs: 600, ...settings },
  };
}

export const failure = () => new ProviderError('transient', 'The provider answered 500', { status: 500 });
export const refusal = () => new ProviderError('refused', 'The provider answered 401', { status: 401 });

/** So many calls, one after the other, that end as told; how often the breaker let none through is the answer. */
export async function call(worker: Breakers, provider: Provider, times: number, error?: () => Error): Promise<number> {
  let skipped = 0;
  for (let number = 0; number < times; number += 1) {
    const end = () => (error === undefined ? Promise.resolve() : Promise.reject(error()));
    await worker.guard(provider, end).catch((thrown: unknown) => {
      if (thrown instanceof BreakerOpenError) skipped += 1;
    });
  }
  return skipped;
}

export async function openBreakerLab(): Promise<BreakerLab> {
  const namespace = uniqueName('br');
  const keyspace = createKeyspace(namespace);
  const clients: RedisClient[] = [];
  const workers: Breakers[] = [];
  const changes: BreakerChange[] = [];
  const events = createEventBus<BreakerEvents>(() => undefined);
  events.on('breaker.changed', (change) => {
    changes.push(change);
  });
  async function connect(role: ConnectionRole, url?: string): Promise<RedisClient> {
    const client = await openTestRedis(role, url);
    clients.push(client);
    client.on('error', () => undefined);
    return client;
  }
  const redis = await connect('producer');
  const store = createBreakerStore(redis, keyspace, events);
  const shared = async ({ name }: Provider) => (await store.readAll()).breakers.get(name) ?? NEW_BREAKER;

  return {
    redis,
    store,
    channel: keyspace.breakers.channel,
    states: keyspace.breakers.states,
    changes,
    shared,
    until: (provider, holds, what) =>
      waitFor(async () => {
        const breaker = await shared(provider);
        return holds(breaker) ? breaker : undefined;
      }, what),

    async startWorker({ url, isDeaf = false, callMs } = {}) {
      const own = createBreakerStore(await connect('worker', url), keyspace, events);
      const subscriber = await connect('subscriber', url);
      const log = createRecordingLog();
      let asked = 0;
      const breakers = await createBreakers({
        store: {
          readAll: own.readAll,
          change(provider, next) {
            asked += 1;
            return own.change(provider, next);
          },
        },
        listen: (onChange, onMissed) =>
          isDeaf ? Promise.resolve() : listenForBreakers(subscriber, keyspace, onChange, onMissed),
        workerId: `wrk_${workers.length}`,
        events: { emit: () => undefined },
        clock: systemClock,
        log,
        ...(callMs === undefined ? {} : { callMs }),
      });
      workers.push(breakers);
      return { ...breakers, log, changes: () => asked };
    },

    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await redis.unlink(keyspace.breakers.states, keyspace.breakers.events);
      for (const client of clients) client.disconnect();
    },
  };
}
