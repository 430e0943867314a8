import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Every ingress listens here and drops the cached principals of the key or tenant whose id it hears. */
export const ACCESS_CHANNEL = 'parley:access';

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
  unblock(shard: number, id: string): Promise<void>;
  /** Announces to every ingress that what it has cached of `id` is out of date. */
  announce(id: string): Promise<void>;
}

export function createAccessFlags(client: RedisClient, keyspace: Keyspace): AccessFlags {
  async function announce(id: string): Promise<void> {
    await client.publish(ACCESS_CHANNEL, id);
  }

  return {
    announce,
    async block(shard, id) {
      await client.set(keyspace.shard(shard).blocked(id), '1', 'EX', FLAG_SECONDS);
      await announce(id);
    },
    async unblock(shard, id) {
      await client.del(keyspace.shard(shard).blocked(id));
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
  client.on('ready', onMissed);
}
