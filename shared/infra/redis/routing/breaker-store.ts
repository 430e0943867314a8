import type { ListQuery } from '../../../contracts/list-page.ts';
import { unknownCursor } from '../../../contracts/list-page.ts';
import { NEW_BREAKER, changeBetween, isNews } from '../../../domain/routing/breaker.ts';
import type { Breaker, BreakerChange } from '../../../domain/routing/breaker.ts';
import type { RedisClient } from '../connection.ts';
import { onResubscribed } from '../outages.ts';
import type { Keyspace } from '../keyspace.ts';
import type { Emitter } from '../../../lifecycle/event-bus.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';

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
  const { channel } = keyspace.breakers;
  const receive = (from: string, message: string) => {
    if (from !== channel) return;
    const split = message.indexOf('\n');
    onChange(message.slice(0, split), parseBreaker(message.slice(split + 1)));
  };
  client.on('message', receive);
  client.on('smessage', receive);
  await (client.isCluster ? client.ssubscribe(channel) : client.subscribe(channel));
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
export interface BreakerStore {
  readAll(): Promise<BreakerSnapshot>;
  /**
   * Makes the next state of the current one, atomically: `next` is called again where another process was faster.
   * Answers what then holds.
   */
  change(
    provider: string,
    next: (current: Breaker, now: number) => Breaker,
  ): Promise<{ breaker: Breaker; now: number }>;
  /** For a provider that is deleted. */
  forget(provider: string): Promise<void>;
  /** One event more than the limit. */
  events(query: ListQuery): Promise<BreakerEvent[]>;
}

/** About a week of a provider that fails every probe. */
const EVENTS_MAX = 10_000;

/** How often a change is tried again when others are faster; each of them has then changed something. */
const TRIES_MAX = 50;

const EVENT_ID = /^\d{1,20}-\d{1,20}$/;

/** What is no breaker is taken for a new one, which the next change puts in its place: the others are read all the same. */
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

export function createBreakerStore(
  client: RedisClient,
  keyspace: Keyspace,
  emitter: Emitter<BreakerEvents>,
): BreakerStore {
  const { states, events, channel } = keyspace.breakers;
  const changeScript = defineScript(client, 'change-breaker');
  const readScript = defineScript(client, 'read-breakers');
  /** As last seen: a change then needs one call. */
  const seen = new Map<string, string>();
  let offsetMs = 0;

  async function swap(provider: string, before: string, after: string, event: string, isHeard: boolean) {
    const args = [provider, before, after, event, EVENTS_MAX, isHeard ? channel : ''];
    const [done, current, now] = (await changeScript([states, events], args)) as ScriptReply[];
    offsetMs = Number(now) - Date.now();
    seen.set(provider, String(current));
    return { done: done === 1, current: String(current), now: Number(now) };
  }

  return {
    async readAll() {
      const [now, pairs] = (await readScript([states], [])) as [number, string[]];
      const breakers = new Map<string, Breaker>();
      for (let index = 0; index < pairs.length; index += 2) {
        const [provider = '', json = ''] = pairs.slice(index);
        breakers.set(provider, parseBreaker(json));
        seen.set(provider, json);
      }
      offsetMs = now - Date.now();
      return { now, breakers };
    },

    async change(provider, next) {
      let json = seen.get(provider) ?? '';
      let now = Date.now() + offsetMs;
      for (let tried = 0; tried < TRIES_MAX; tried += 1) {
        const before = parseBreaker(json);
        const after = next(before, now);
        const isSame = after === before;
        // What is only believed to hold is written too, unchanged: that finds out whether it does.
        const nextJson = isSame ? json : JSON.stringify({ ...after, version: before.version + 1 });
        const change = changeBetween(provider, before, after, now);
        const event = change === undefined ? '' : JSON.stringify(change);
        const answer = await swap(provider, json, nextJson, event, isNews(before, after));
        if (answer.done) {
          if (change !== undefined) emitter.emit('breaker.changed', change);
          return { breaker: parseBreaker(answer.current), now: answer.now };
        }
        ({ current: json, now } = answer);
      }
      throw new Error(`The breaker of ${provider}: ${TRIES_MAX} other processes were first`);
    },

    async forget(provider) {
      await client.hdel(states, provider);
      seen.delete(provider);
    },

    async events({ limit, after, order }) {
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
