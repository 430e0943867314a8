import type { RedisClient } from './connection.ts';

/** Two renewals of a lease and some: by then a worker that lives has shown it (workers/pipeline/lease/lease.ts). */
const BACK_MS = 5_000;

/** Says whether Redis came back a moment ago. `client` is connected already; only what follows is an outage. */
export function watchReconnects(client: RedisClient): { hasReconnectedRecently(): boolean } {
  let backAt = -Infinity;
  client.on('ready', () => {
    backAt = performance.now();
  });
  return { hasReconnectedRecently: () => client.status !== 'ready' || performance.now() - backAt < BACK_MS };
}
