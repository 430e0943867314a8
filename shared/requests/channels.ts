import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { onResubscribed, subscribe } from '../redis/connection.ts';
import { inTime } from '../redis/time-limits.ts';

/** Separates messages of several requests (append.lua). */
const SEPARATOR = '\x1e';

/** `head`: see decodeMessage of contracts/events.ts. */
type EntryListener = (requestId: string, head: string, payload: string) => void;

/** One channel per ingress and shard, subscribed once. */
export type ChunkChannel = ReturnType<typeof createChunkChannel>;

/** `client` is for pub/sub only. */
export function createChunkChannel(client: RedisClient, keyspace: Keyspace, ingressId: string) {
  let listener: EntryListener | undefined;
  const subscriptions = new Map<number, Promise<unknown>>();
  const subscribed = new Set<number>();
  const nameOf = (shard: number) => keyspace.shard(shard).channel(ingressId);

  function receive(messages: string): void {
    for (const message of messages.split(SEPARATOR)) {
      const headEnd = message.indexOf('\n');
      const space = message.indexOf(' ');
      listener?.(message.slice(0, space), message.slice(space + 1, headEnd), message.slice(headEnd + 1));
    }
  }

  return {
    nameOf,

    /** Resolves once Redis confirms the subscription, rejects if it does not in time; safe to repeat. */
    async subscribe(shard: number): Promise<void> {
      let pending = subscriptions.get(shard);
      if (pending === undefined) {
        pending = subscribe(client, nameOf(shard), receive);
        subscriptions.set(shard, pending);
        pending.then(
          () => subscribed.add(shard),
          () => subscriptions.delete(shard),
        );
      }
      // Only this caller stops waiting; the subscription goes on.
      await inTime(pending);
    },

    /** Redis has confirmed; ioredis repeats the subscription after a reconnect. */
    isSubscribed: (shard: number): boolean => subscribed.has(shard),

    onEntry: (hear: EntryListener): void => void (listener = hear),

    /** Called after every reconnect, when messages may have been missed. */
    onReady(listener: () => void): void {
      onResubscribed(client, listener);
    },
  };
}
