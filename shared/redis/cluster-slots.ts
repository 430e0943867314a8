import { Command } from 'ioredis';
import type { Cluster, Redis } from 'ioredis';

/** The slot of a key, by its hash tag, which every server of a cluster agrees on. */
export function slotOf(key: string): number {
  return new Command('exists', [key]).getSlot();
}

/** A server as `CLUSTER SLOTS` names it. */
export function nameOf({ options: { host, port } }: Redis): string {
  return `${host}:${port}`;
}

/** The master of each slot, by name, as far as the client knows. */
export function mastersBySlot(cluster: Cluster): string[] {
  return cluster.slots.map(([master = '']) => master);
}
