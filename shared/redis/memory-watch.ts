import { Cluster } from 'ioredis';

import type { Logger } from '../logging/logger.ts';
import { repeat } from '../lifecycle/clock.ts';
import type { RedisClient } from './connection.ts';
import { inTime } from './time-limits.ts';

const LOOK_EVERY_MS = 1_000;
const FULL_RATIO = 0.9;
/** Large bodies leave room for small ones: otherwise some tenants' images would refuse everybody. */
const FULL_FOR_LARGE_RATIO = 0.75;

function figureOf(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

/** Redis compares with its limit without its buffers for the append-only file and for replicas. */
function ratioOf(info: string): number {
  const limit = figureOf(info, 'maxmemory');
  const used = figureOf(info, 'used_memory') - figureOf(info, 'mem_not_counted_for_evict');
  return limit === 0 ? 0 : used / limit;
}

/** Looks once a second, on a cluster at the fullest answering master. Without an answer, the last one holds. */
export function watchMemory(client: RedisClient, log: Logger) {
  let ratio = 0;

  async function look(): Promise<void> {
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    const asked = await Promise.allSettled(nodes.map((node) => inTime(node.info('memory'))));
    const ratios = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [ratioOf(answer.value)] : []));
    if (ratios.length === 0) return;
    const was = ratio;
    ratio = Math.max(...ratios);
    if (ratio > FULL_RATIO && was <= FULL_RATIO) log.error('Redis is full; new requests wait until it has room.');
    if (ratio <= FULL_RATIO && was > FULL_RATIO) log.info('Redis has room again.');
  }

  const looking = repeat(
    look,
    () => LOOK_EVERY_MS,
    () => undefined,
  );
  return {
    /** Used part of `maxmemory`; 0 where Redis has no limit. */
    ratio: (): number => ratio,
    /** Refuses new work, so that open work has room to end (docs/spec.md#stores-away). */
    isFull: (isLarge = false): boolean => ratio > (isLarge ? FULL_FOR_LARGE_RATIO : FULL_RATIO),
    /** Redis refuses every command that takes memory, the queue's included. */
    isExhausted: (): boolean => ratio >= 1,
    stop(): void {
      void looking.stop();
    },
  };
}

/** Redis refused a command or a whole script for lack of memory, before it did anything. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('OOM ');
}
