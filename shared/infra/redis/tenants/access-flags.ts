import type { RedisClient } from '../connection.ts';
import { onResubscribed } from '../outages.ts';
import { ACCESS_CHANNEL } from '../keyspace.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/**
 * Longer than any cached principal may live (15 minutes, docs/architecture/facts.md section 3); after that MongoDB's
 * word is enough.
 */
const FLAG_SECONDS = 24 * 60 * 60;

/**
 * Makes revoked keys and suspended tenants count at once: admission looks at these flags
 * (docs/architecture/facts.md section 3).
 */
export interface AccessFlags {
  /** `id` is a key's or a tenant's; safe to repeat. */
  block(shard: number, id: string): Promise<void>;
  /**
   * Blocks an id, lets `change` revoke it in MongoDB, and announces it: a process that dies in between leaves a key that is
   * refused. If the flag cannot be set the change is made anyway, and the call rejects.
   */
  blockAround<Result>(shard: number, id: string, change: () => Promise<Result>): Promise<Result>;
  unblock(shard: number, id: string): Promise<void>;
  /** Which of some ids are blocked on a shard. */
  blocked(shard: number, ids: readonly string[]): Promise<string[]>;
  /** Announces to every ingress that what it has cached of `id` is out of date. */
  announce(id: string): Promise<void>;
}

export function createAccessFlags(client: RedisClient, keyspace: Keyspace): AccessFlags {
  const setFlag = defineScript(client, 'block');

  async function announce(id: string): Promise<void> {
    await client.publish(ACCESS_CHANNEL, id);
  }

  async function block(shard: number, id: string): Promise<void> {
    await setFlag([keyspace.shard(shard).blocked(id)], [FLAG_SECONDS]);
    await announce(id);
  }

  return {
    announce,
    block,
    async blocked(shard, ids) {
      const found = await Promise.all(ids.map((id) => client.exists(keyspace.shard(shard).blocked(id))));
      return ids.filter((_, index) => found[index] === 1);
    },
    async blockAround(shard, id, change) {
      const [flagged] = await Promise.allSettled([block(shard, id)]);
      const result = await change();
      if (flagged.status === 'rejected') throw flagged.reason;
      await announce(id);
      return result;
    },
    async unblock(shard, id) {
      await setFlag([keyspace.shard(shard).blocked(id)], [0]);
      await announce(id);
    },
  };
}

/**
 * Listens for keys and tenants that have changed. `onMissed` is called after every reconnect, when messages may have been lost.
 * `client` is a subscriber; it may be the one of the chunk channel.
 */
export async function listenForAccessChanges(
  client: RedisClient,
  onChange: (id: string) => void,
  onMissed: () => void,
): Promise<void> {
  client.on('message', (channel: string, id: string) => {
    if (channel === ACCESS_CHANNEL) onChange(id);
  });
  await client.subscribe(ACCESS_CHANNEL);
  onResubscribed(client, onMissed);
}
