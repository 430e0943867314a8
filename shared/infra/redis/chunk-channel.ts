import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';

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

/** A caller waits for it; the subscription itself goes on, for the next caller. */
const CONFIRM_TIMEOUT_MS = 1_500;

async function inTime(confirmation: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_resolve, reject) => {
    // The words of ioredis's own time limit, which this connection does not have.
    timer = setTimeout(() => {
      reject(new Error('Command timed out'));
    }, CONFIRM_TIMEOUT_MS);
  });
  try {
    await Promise.race([confirmation, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** `client` is for pub/sub only (design.md section 5). */
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
