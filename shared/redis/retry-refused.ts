import { setTimeout as pause } from 'node:timers/promises';

import { Cluster } from 'ioredis';

import { slotOf } from './cluster-slots.ts';
import type { RedisClient } from './connection.ts';

/**
 * What a server answers, before it does anything, that takes no writes for the moment: too few replicas have them, its disk
 * is full, a script of somebody else runs, or the keys are on their way to another server.
 */
const REFUSED = /^(?:NOREPLICAS|MISCONF|MASTERDOWN|LOADING|BUSY|TRYAGAIN) /;

const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 1_000;

/** Whether a server refused a call before it did anything: the same call may pass in a moment. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSED.test(error.message);
}

/** Calls of one client that wait for a server to take writes again, by the slot of their keys; a single server has one. */
interface Waiting {
  slots: Map<number, { calls: number; since: number }>;
  onTaken: ((slot: number, refusedMs: number) => void)[];
}

const waiting = new WeakMap<RedisClient, Waiting>();

function waitingOf(client: RedisClient): Waiting {
  const known = waiting.get(client) ?? { slots: new Map(), onTaken: [] };
  waiting.set(client, known);
  return known;
}

/** Whether calls wait because a server refuses them; `slot` undefined: of whichever slot. */
export function isRefusing(client: RedisClient, slot: number | undefined): boolean {
  const { slots } = waitingOf(client);
  return slot === undefined ? slots.size > 0 : slots.has(slot);
}

/** Calls back when nothing of a slot waits any more: what was refused has been done. */
export function onTaken(client: RedisClient, listener: (slot: number, refusedMs: number) => void): void {
  waitingOf(client).onTaken.push(listener);
}

/** Whether a client waits for Redis: a worker's does, an ingress's callers get 503. */
function isPatient(client: RedisClient): boolean {
  const options = client instanceof Cluster ? client.options.redisOptions : client.options;
  return options?.maxRetriesPerRequest === null;
}

async function untilTaken<Reply>(
  client: RedisClient,
  slot: number,
  error: unknown,
  send: () => Promise<Reply>,
): Promise<Reply> {
  if (!isRefusal(error) || !isPatient(client)) throw error;
  const { slots, onTaken } = waitingOf(client);
  const state = slots.get(slot) ?? { calls: 0, since: performance.now() };
  slots.set(slot, state);
  state.calls += 1;
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2)) {
      await pause(pauseMs);
      try {
        return await send();
      } catch (next) {
        if (!isRefusal(next)) throw next;
      }
    }
  } finally {
    state.calls -= 1;
    if (state.calls === 0) {
      slots.delete(slot);
      for (const listener of onTaken) listener(slot, performance.now() - state.since);
    }
  }
}

/**
 * Sends a call about `key` again for as long as its server refuses it, as ioredis does while the server is away: a worker then
 * loses nothing that it runs.
 */
export function retryWhileRefused<Reply>(client: RedisClient, key: string, send: () => Promise<Reply>): Promise<Reply> {
  return send().catch((error: unknown) => untilTaken(client, client instanceof Cluster ? slotOf(key) : 0, error, send));
}
