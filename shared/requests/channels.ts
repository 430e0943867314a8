import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { onResubscribed } from '../redis/redis-return.ts';
import { inTime } from '../redis/time-limits.ts';

/** `client` is a subscriber; `onCancel` gets the request's id. */
export function createCancelChannel(client: RedisClient, keyspace: Keyspace, onCancel: (requestId: string) => void) {
  const names = new Set<string>();
  const receive = (channel: string, requestId: string) => {
    if (names.has(channel)) onCancel(requestId);
  };
  client.on('message', receive);
  client.on('smessage', receive);
  return {
    /** Safe to repeat. A missed message costs time only: the flag in the record counts. */
    async subscribe(shard: number): Promise<void> {
      const name = keyspace.shard(shard).cancelled;
      names.add(name);
      await (client.isCluster ? client.ssubscribe(name) : client.subscribe(name));
    },
  };
}

/** Stands between the messages of several requests (append.lua). */
const SEPARATOR = '\x1e';

/** `head`: see decodeMessage of contracts/events.ts. */
type EntryListener = (requestId: string, head: string, payload: string) => void;

/** The pub/sub side of the relay: one channel per ingress and shard, subscribed once. */
export type ChunkChannel = ReturnType<typeof createChunkChannel>;

/** `client` is for pub/sub only. */
export function createChunkChannel(client: RedisClient, keyspace: Keyspace, ingressId: string) {
  const names = new Set<string>();
  const subscriptions = new Map<number, Promise<unknown>>();
  const subscribed = new Set<number>();
  const nameOf = (shard: number) => keyspace.shard(shard).channel(ingressId);

  return {
    nameOf,

    /** Resolves once Redis has confirmed the subscription, rejects where it does not in time; safe to repeat. */
    async subscribe(shard: number): Promise<void> {
      let pending = subscriptions.get(shard);
      if (pending === undefined) {
        names.add(nameOf(shard));
        pending = client.isCluster ? client.ssubscribe(nameOf(shard)) : client.subscribe(nameOf(shard));
        subscriptions.set(shard, pending);
        pending.then(
          () => subscribed.add(shard),
          () => subscriptions.delete(shard),
        );
      }
      // Only this caller stops waiting; the subscription goes on, for the next one.
      await inTime(pending);
    },

    /** Redis has confirmed the subscription; ioredis repeats it after a reconnect. */
    isSubscribed: (shard: number): boolean => subscribed.has(shard),

    onEntry(listener: EntryListener): void {
      const onMessage = (message: string) => {
        const headEnd = message.indexOf('\n');
        const space = message.indexOf(' ');
        listener(message.slice(0, space), message.slice(space + 1, headEnd), message.slice(headEnd + 1));
      };
      const receive = (channel: string, message: string) => {
        if (!names.has(channel)) return;
        for (const each of message.split(SEPARATOR)) onMessage(each);
      };
      client.on('message', receive);
      client.on('smessage', receive);
    },

    /** Called after every reconnect, when messages may have been missed. */
    onReady(listener: () => void): void {
      onResubscribed(client, listener);
    },
  };
}
