import { setTimeout as pause } from 'node:timers/promises';

import { Cluster } from 'ioredis';

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

/** Calls of one client that wait for a server to take writes again. */
interface Waiting {
  calls: number;
  onTaken: (() => void)[];
}

const waiting = new WeakMap<RedisClient, Waiting>();

function waitingOf(client: RedisClient): Waiting {
  const known = waiting.get(client) ?? { calls: 0, onTaken: [] };
  waiting.set(client, known);
  return known;
}

/** Whether calls wait because a server refuses them. */
export function isRefusing(client: RedisClient): boolean {
  return waitingOf(client).calls > 0;
}

/** Calls back when nothing waits any more: what was refused has been done. */
export function onTaken(client: RedisClient, listener: () => void): void {
  waitingOf(client).onTaken.push(listener);
}

/** Whether a client waits for Redis: a worker's does, an ingress's callers get 503. */
function isPatient(client: RedisClient): boolean {
  const options = client instanceof Cluster ? client.options.redisOptions : client.options;
  return options?.maxRetriesPerRequest === null;
}

async function untilTaken<Reply>(client: RedisClient, error: unknown, send: () => Promise<Reply>): Promise<Reply> {
  if (!isRefusal(error) || !isPatient(client)) throw error;
  const state = waitingOf(client);
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
    if (state.calls === 0) for (const listener of state.onTaken) listener();
  }
}

/**
 * Sends a call again for as long as its server refuses it, as ioredis does while the server is away: a worker then loses
 * nothing that it runs.
 */
export function retryWhileRefused<Reply>(client: RedisClient, send: () => Promise<Reply>): Promise<Reply> {
  return send().catch((error: unknown) => untilTaken(client, error, send));
}
