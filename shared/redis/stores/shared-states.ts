import type { RedisClient } from '../connection.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';

/** `event` is kept; `isHeard`: other processes must know the new state at once. */
interface Announcement {
  /** JSON; '' for none. */
  event: string;
  isHeard: boolean;
}

/** Named JSON states with versions, which all workers change by compare and set. */
export interface SharedStates<State> {
  readAll(): Promise<{ now: number; states: ReadonlyMap<string, State> }>;
  /** Atomic: calls `next` again where another process was faster. Returns states before and after, in Redis's time. */
  change(
    name: string,
    next: (current: State, now: number) => State,
    announce?: (before: State, after: State, now: number) => Announcement,
  ): Promise<{ before: State; state: State; now: number; changedAt: number }>;
  forget(name: string): Promise<void>;
}

export interface SharedStatesKeys {
  states: string;
  /** In the slot of the states. */
  events: string;
  channel: string;
}

/** About a week of a provider that fails every probe. */
const EVENTS_MAX = 10_000;

/** Each lost try means that another process has changed something. */
const TRIES_MAX = 50;

/** `parse` makes a new state of '' and of unreadable values. */
export function createSharedStates<State extends { version: number }>(
  client: RedisClient,
  { states, events, channel }: SharedStatesKeys,
  parse: (json: string) => State,
): SharedStates<State> {
  const changeScript = defineScript(client, 'change-state');
  const readScript = defineScript(client, 'read-states');
  /** The states last seen: a change then needs one call. */
  const seen = new Map<string, string>();
  let offsetMs = 0;

  async function swap(name: string, before: string, after: string, { event, isHeard }: Announcement) {
    const args = [name, before, after, event, EVENTS_MAX, isHeard ? channel : ''];
    const [done, current, now] = (await changeScript([states, events], args)) as ScriptReply[];
    offsetMs = Number(now) - Date.now();
    seen.set(name, String(current));
    return { done: done === 1, current: String(current), now: Number(now) };
  }

  return {
    async readAll() {
      const [now, pairs] = (await readScript([states], [])) as [number, string[]];
      const all = new Map<string, State>();
      for (let index = 0; index < pairs.length; index += 2) {
        const [name = '', json = ''] = pairs.slice(index);
        all.set(name, parse(json));
        seen.set(name, json);
      }
      offsetMs = now - Date.now();
      return { now, states: all };
    },

    async change(name, next, announce = () => ({ event: '', isHeard: false })) {
      let json = seen.get(name) ?? '';
      let now = Date.now() + offsetMs;
      for (let tried = 0; tried < TRIES_MAX; tried += 1) {
        const before = parse(json);
        const after = next(before, now);
        // A state that is only believed to hold is written unchanged too, to check that it does.
        const nextJson = after === before ? json : JSON.stringify({ ...after, version: before.version + 1 });
        const changedAt = now;
        const answer = await swap(name, json, nextJson, announce(before, after, now));
        if (answer.done) return { before, state: parse(answer.current), now: answer.now, changedAt };
        ({ current: json, now } = answer);
      }
      throw new Error(`The state of ${name}: ${TRIES_MAX} other processes were first`);
    },

    async forget(name) {
      await client.hdel(states, name);
      seen.delete(name);
    },
  };
}
