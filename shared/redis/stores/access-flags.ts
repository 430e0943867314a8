import type { RedisClient } from '../connection.ts';
import { onResubscribed } from '../redis-return.ts';
import { ACCESS_CHANNEL } from '../keyspace.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/**
 * Longer than any cached principal may live (15 minutes, docs/spec.md#stores-away); after that MongoDB's word is
 * enough.
 */
const FLAG_SECONDS = 24 * 60 * 60;

const BLOCKED = '1';
const CHANGED = 'changed';

/** Makes revoked keys and suspended tenants count at once: admission looks at these flags. */
export type AccessFlags = ReturnType<typeof createAccessFlags>;

export function createAccessFlags(client: RedisClient, keyspace: Keyspace) {
  const setFlag = defineScript(client, 'block');

  /** Announces to every ingress that what it has cached of `id` is out of date. */
  async function announce(id: string): Promise<void> {
    await client.publish(ACCESS_CHANNEL, id);
  }

  const set = (shard: number, flag: string, seconds: number, value: string) =>
    setFlag([keyspace.shard(shard).blocked(flag)], [seconds, value]);

  /** Caches know a key by its id, and so do ingresses of versions whose flags had no revision. */
  const ownerOf = (flag: string) => flag.replace(/:.*/, '');
  const announceOwner = (flag: string) => announce(ownerOf(flag));

  /** `flag` is a key's (flagOf), or a tenant's id; safe to repeat. */
  async function block(shard: number, flag: string): Promise<void> {
    await Promise.all([...new Set([flag, ownerOf(flag)])].map((name) => set(shard, name, FLAG_SECONDS, BLOCKED)));
    await announceOwner(flag);
  }

  return {
    announce,
    block,
    /** Lets nobody in any more who was let in under this flag of a key: the ingress looks the key up again. Safe to repeat. */
    async outdate(shard: number, flag: string): Promise<void> {
      await set(shard, flag, FLAG_SECONDS, CHANGED);
    },
    /** Which of some flags are blocked on a shard. */
    async blocked(shard: number, flags: readonly string[]): Promise<string[]> {
      const found = await Promise.all(flags.map((flag) => client.get(keyspace.shard(shard).blocked(flag))));
      return flags.filter((_, index) => found[index] === BLOCKED);
    },
    /**
     * Blocks a flag, lets `change` revoke it in MongoDB, and announces it: a process that dies in between leaves a key that is
     * refused. If the flag cannot be set the change is made anyway, and the call rejects.
     */
    async blockAround<Result>(shard: number, flag: string, change: () => Promise<Result>): Promise<Result> {
      const [flagged] = await Promise.allSettled([block(shard, flag)]);
      const result = await change();
      if (flagged.status === 'rejected') throw flagged.reason;
      await announceOwner(flag);
      return result;
    },
    async unblock(shard: number, flag: string): Promise<void> {
      await set(shard, flag, 0, BLOCKED);
      await announce(flag);
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
