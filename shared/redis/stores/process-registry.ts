/**
 * Processes are under keys that expire 10 s after the last beat, by Redis's clock alone. Ingresses read there which
 * protocol workers know, so that they ask no older worker for what it does not.
 */
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

import { BUILD } from '../../config/load-config.ts';
import { repeat } from '../../lifecycle/clock.ts';
import type { Closer } from '../../lifecycle/closer.ts';
import type { Serving } from '../../lifecycle/readiness.ts';
import type { Logger } from '../../logging/logger.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { inTime } from '../time-limits.ts';

/** Raised when ingresses begin to ask for what workers did not know. */
export const PROTOCOL = 2;

const BEAT_MS = 2_500;
const EXPIRES_MS = 10_000;
const WAIT_MS = 1_000;

export interface ProcessEntry {
  id: string;
  kind: 'ingress' | 'worker';
  version: string;
  commit: string;
  protocol: number;
  host: string;
  pid: number;
  uptimeSeconds: number;
  /** Requests that a worker runs, or answers that an ingress relays. */
  running: number;
  /** Stopping: takes nothing more. */
  draining: boolean;
}

export type ProcessRegistry = ReturnType<typeof createProcessRegistry>;

export function createProcessRegistry(client: RedisClient, { processes }: Keyspace) {
  return {
    async list(): Promise<ProcessEntry[]> {
      // Sorted, so that pages of the list go on.
      const ids = (await client.smembers(processes.ids)).sort();
      if (ids.length === 0) return [];
      const found = await client.mget(ids.map(processes.entry));
      const gone = ids.filter((_, index) => found[index] === null);
      if (gone.length > 0) await client.srem(processes.ids, ...gone);
      // Written by `beat` only.
      return found.flatMap((text) => (text === null ? [] : [JSON.parse(text) as ProcessEntry]));
    },
    async beat(entry: ProcessEntry): Promise<void> {
      await client.set(processes.entry(entry.id), JSON.stringify(entry), 'PX', EXPIRES_MS);
      await client.sadd(processes.ids, entry.id);
    },
    async remove(id: string): Promise<void> {
      await client.srem(processes.ids, id);
      await client.del(processes.entry(id));
    },
  };
}

/** Keeps this process in the registry until it ends. Returns what writes its state at once, for a stop. */
export function register(
  registry: ProcessRegistry,
  own: Pick<ProcessEntry, 'id' | 'kind'>,
  { state, closer, log }: { state: () => Pick<ProcessEntry, 'running' | 'draining'>; closer: Closer; log: Logger },
): () => void {
  const beat = () =>
    inTime(
      registry.beat({
        ...own,
        ...BUILD,
        protocol: PROTOCOL,
        host: hostname(),
        pid: process.pid,
        uptimeSeconds: Math.round(process.uptime()),
        ...state(),
      }),
    );
  const fail = (error: unknown) => {
    log.debug('The registry of processes could not be written.', { error });
  };
  const beating = repeat(beat, () => BEAT_MS, fail);
  closer.defer('registry', async () => {
    await beating.stop();
    await inTime(registry.remove(own.id));
  });
  return () => {
    beat().catch(fail);
  };
}

/**
 * Resolves once each worker that takes requests knows this ingress's protocol: so an upgrade that replaces all
 * processes at once starts workers first. Without any worker it waits for nothing: requests wait.
 */
export async function untilWorkersKnow(registry: ProcessRegistry, serving: Serving, log: Logger): Promise<void> {
  for (let isSaid = false; ;) {
    const all = await inTime(registry.list()).catch(() => undefined);
    const workers = all?.filter(({ kind, draining }) => kind === 'worker' && !draining) ?? [];
    const old = workers.filter(({ protocol }) => protocol < PROTOCOL);
    if (all !== undefined && old.length === 0) return;
    if (old.length > 0) {
      const reason = `${old.length} of ${workers.length} workers do not know protocol ${PROTOCOL}; replace the workers first`;
      serving.waitFor({ workers: reason });
      if (!isSaid) log.warn(`This ingress waits: ${reason}.`, { count: old.length });
      isSaid = true;
    }
    await pause(WAIT_MS);
  }
}
