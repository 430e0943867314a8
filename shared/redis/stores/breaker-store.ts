import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { NEW_BREAKER, changeBetween, isNews } from '../../domain/breaker.ts';
import type { Breaker, BreakerChange } from '../../domain/breaker.ts';
import type { Emitter } from '../../lifecycle/event-bus.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { onResubscribed, subscribe } from '../connection.ts';
import { createSharedStates } from './shared-states.ts';

/**
 * Hears of every breaker that changes. `onMissed` is called after every reconnect, when messages may have been lost.
 * `client` is a subscriber.
 */
export async function listenForBreakers(
  client: RedisClient,
  keyspace: Keyspace,
  onChange: (provider: string, breaker: Breaker) => void,
  onMissed: () => void,
): Promise<void> {
  await subscribe(client, keyspace.breakers.channel, (message) => {
    const split = message.indexOf('\n');
    onChange(message.slice(0, split), parseBreaker(message.slice(split + 1)));
  });
  onResubscribed(client, onMissed);
}

/** A change as it is kept: the id is Redis's, a time and a number. */
export interface BreakerEvent extends BreakerChange {
  id: string;
}

export interface BreakerSnapshot {
  /** Redis's clock, which is the one that all times of breakers are of. */
  now: number;
  breakers: ReadonlyMap<string, Breaker>;
}

/** The circuit breakers of all providers, shared by all workers. */
export type BreakerStore = ReturnType<typeof createBreakerStore>;

const EVENT_ID = /^\d{1,20}-\d{1,20}$/;

/** Takes a value that is no breaker for a new one, which the next change puts in its place: the others are read all the same. */
function parseBreaker(json: string): Breaker {
  try {
    // Only this service writes it.
    return json === '' ? NEW_BREAKER : (JSON.parse(json) as Breaker);
  } catch {
    return NEW_BREAKER;
  }
}

function toEvent(id: string, fields: string[]): BreakerEvent {
  // Only `change` writes it.
  return { id, ...(JSON.parse(fields[1] ?? '{}') as BreakerChange) };
}

export interface BreakerEvents {
  /** A call of this process has changed the state, so there is one event for each change. */
  'breaker.changed': [change: BreakerChange];
}

export function createBreakerStore(client: RedisClient, keyspace: Keyspace, emitter: Emitter<BreakerEvents>) {
  const { events } = keyspace.breakers;
  const shared = createSharedStates(client, keyspace.breakers, parseBreaker);

  return {
    async readAll(): Promise<BreakerSnapshot> {
      const { now, states } = await shared.readAll();
      return { now, breakers: states };
    },

    /**
     * Makes the next state of the current one, atomically: `next` is called again where another process was faster.
     * Answers what then holds.
     */
    async change(
      provider: string,
      next: (current: Breaker, now: number) => Breaker,
    ): Promise<{ breaker: Breaker; now: number }> {
      const { before, state, now, changedAt } = await shared.change(provider, next, (from, to, time) => {
        const change = changeBetween(provider, from, to, time);
        return { event: change === undefined ? '' : JSON.stringify(change), isHeard: isNews(from, to) };
      });
      const change = changeBetween(provider, before, state, changedAt);
      if (change !== undefined) emitter.emit('breaker.changed', change);
      return { breaker: state, now };
    },

    /** For a provider that is deleted. */
    forget: shared.forget,

    /** One event more than the limit. */
    async events({ limit, after, order }: ListQuery): Promise<BreakerEvent[]> {
      if (after !== undefined && !EVENT_ID.test(after)) throw unknownCursor();
      const count = limit + 1;
      const from = after === undefined ? undefined : `(${after}`;
      const rows =
        order === 'asc'
          ? await client.xrange(events, from ?? '-', '+', 'COUNT', count)
          : await client.xrevrange(events, from ?? '+', '-', 'COUNT', count);
      return rows.map(([id, fields]) => toEvent(id, fields));
    },
  };
}
