import { unknownCursor } from '../../contracts/list-page.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { NEW_BREAKER, changeBetween, isNews } from '../../domain/breaker.ts';
import type { Breaker, BreakerChange } from '../../domain/breaker.ts';
import type { Emitter } from '../../lifecycle/event-bus.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { onResubscribed, subscribe } from '../connection.ts';
import { createSharedStates } from './shared-states.ts';

/** `onMissed` is called after every reconnect, when messages may have been lost. `client` is a subscriber. */
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

/** The id is Redis's: a time and a number. */
export interface BreakerEvent extends BreakerChange {
  id: string;
}

export interface BreakerSnapshot {
  /** All times of breakers are by Redis's clock. */
  now: number;
  breakers: ReadonlyMap<string, Breaker>;
}

/** All workers share them. */
export type BreakerStore = ReturnType<typeof createBreakerStore>;

const EVENT_ID = /^\d{1,20}-\d{1,20}$/;

/** An unreadable value counts as a new breaker, which the next change stores: the others are still read. */
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
  /** Emitted by the process that made the change, so once for each. */
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

    /** Atomic: `next` is called again where another process was faster. Returns the state that then holds. */
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

    /** For a deleted provider. */
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
