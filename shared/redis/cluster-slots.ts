import { Command } from 'ioredis';
import type { Cluster, Redis } from 'ioredis';

/** By the key's hash tag; every server of a cluster agrees on it. */
export function slotOf(key: string): number {
  return new Command('exists', [key]).getSlot();
}

export function nameOf({ options: { host, port } }: Redis): string {
  return `${host}:${port}`;
}

/** The names that the client knows, by slot. */
export function mastersBySlot(cluster: Cluster): string[] {
  return cluster.slots.map(([master = '']) => master);
}
