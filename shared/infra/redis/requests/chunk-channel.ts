import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { inTime } from '../time-limit.ts';

type EntryListener = (requestId: string, lastSeq: number, payload: string) => void;

/** The pub/sub side of the relay: one channel per ingress and shard, subscribed once. */
export interface ChunkChannel {
  nameOf(shard: number): string;
  /** Resolves once Redis has confirmed the subscription, rejects where it does not in time; safe to repeat. */
  subscribe(shard: number): Promise<void>;
  onEntry(listener: EntryListener): void;
  /** Called after every reconnect, when messages may have been missed. */
  onReady(listener: () => void): void;
}

/** `client` is for pub/sub only (docs/architecture/facts.md section 5). */
export function createChunkChannel(client: RedisClient, keyspace: Keyspace, ingressId: string): ChunkChannel {
  const names = new Set<string>();
  const subscriptions = new Map<number, Promise<unknown>>();
  const nameOf = (shard: number) => keyspace.shard(shard).channel(ingressId);

  return {
    nameOf,

    async subscribe(shard) {
      let pending = subscriptions.get(shard);
      if (pending === undefined) {
        names.add(nameOf(shard));
        pending = client.isCluster ? client.ssubscribe(nameOf(shard)) : client.subscribe(nameOf(shard));
        subscriptions.set(shard, pending);
        pending.catch(() => subscriptions.delete(shard));
      }
      // A caller waits for it; the subscription itself goes on, for the next caller.
      await inTime(pending);
    },

    onEntry(listener) {
      const receive = (channel: string, message: string) => {
        if (!names.has(channel)) return;
        const headEnd = message.indexOf('\n');
        const space = message.indexOf(' ');
        listener(message.slice(0, space), Number(message.slice(space + 1, headEnd)), message.slice(headEnd + 1));
      };
      client.on('message', receive);
      client.on('smessage', receive);
    },

    onReady(listener) {
      client.on('ready', listener);
    },
  };
}
