import type { RedisClient } from '../connection.ts';
import { defineScript } from '../scripts.ts';
import type { ScriptReply } from '../scripts.ts';

/** A change tells others two things: an event that is kept, and whether other processes must hear of the new state at once. */
interface Announcement {
  /** JSON; '' for none. */
  event: string;
  isHeard: boolean;
}

/** States of one kind by name, each JSON with a version, which all workers change by compare and set. */
export interface SharedStates<State> {
  readAll(): Promise<{ now: number; states: ReadonlyMap<string, State> }>;
  /**
   * Makes the next state of the current one, atomically: `next` is called again where another process was faster.
   * Answers what held before and what then holds. All times are Redis's.
   */
  change(
    name: string,
    next: (current: State, now: number) => State,
    announce?: (before: State, after: State, now: number) => Announcement,
  ): Promise<{ before: State; state: State; now: number; changedAt: number }>;
  forget(name: string): Promise<void>;
}

export interface SharedStatesKeys {
  states: string;
  /** Of the same slot. */
  events: string;
  channel: string;
}

/** About a week of a provider that fails every probe. */
const EVENTS_MAX = 10_000;

/** How often a change is tried again when others are faster; each of them has then changed something. */
const TRIES_MAX = 50;

/** `parse` makes a new state of '' and of what cannot be read. */
export function createSharedStates<State extends { version: number }>(
  client: RedisClient,
  { states, events, channel }: SharedStatesKeys,
  parse: (json: string) => State,
): SharedStates<State> {
  const changeScript = defineScript(client, 'change-state');
  const readScript = defineScript(client, 'read-states');
  /** The state as last seen: a change then needs one call. */
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
        // A state that is only believed to hold is written too, unchanged: that finds out whether it does.
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
