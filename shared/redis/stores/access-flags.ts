import type { RedisClient } from '../connection.ts';
import { onResubscribed } from '../connection.ts';
import { ACCESS_CHANNEL } from '../keyspace.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

/** Longer than any cached principal lives (15 minutes, docs/spec.md#stores-away); then MongoDB suffices. */
const FLAG_SECONDS = 24 * 60 * 60;

const BLOCKED = '1';
const CHANGED = 'changed';

/** Caches know a key by its id, and so do ingresses of versions whose flags had no revision. */
const ownerOf = (flag: string) => flag.replace(/:.*/, '');

/** Admission checks these flags, so revoked keys and suspended tenants count at once. */
export type AccessFlags = ReturnType<typeof createAccessFlags>;

export function createAccessFlags(client: RedisClient, keyspace: Keyspace) {
  const setFlag = defineScript(client, 'block');

  /** Tells every ingress to drop its cache of a key, by its id or a flag, or of a tenant. */
  async function announce(name: string): Promise<void> {
    await client.publish(ACCESS_CHANNEL, ownerOf(name));
  }

  const set = (shard: number, flag: string, seconds: number, value: string) =>
    setFlag([keyspace.shard(shard).blocked(flag)], [seconds, value]);

  /** `flag` is a key's (flagOf), or a tenant's id; safe to repeat. */
  async function block(shard: number, flag: string): Promise<void> {
    await Promise.all([...new Set([flag, ownerOf(flag)])].map((name) => set(shard, name, FLAG_SECONDS, BLOCKED)));
    await announce(flag);
  }

  return {
    announce,
    block,
    /** Holders of this flag are refused, and the ingress looks the key up again. Safe to repeat. */
    async outdate(shard: number, flag: string): Promise<void> {
      await Promise.all([set(shard, flag, FLAG_SECONDS, CHANGED), announce(flag)]);
    },
    async copy(from: number, to: number, flags: readonly string[]): Promise<void> {
      const copyOne = async (name: string) => {
        const value = await client.get(keyspace.shard(from).blocked(name));
        if (value !== null) await set(to, name, FLAG_SECONDS, value);
      };
      await Promise.all([...new Set([...flags, ...flags.map(ownerOf)])].map(copyOne));
    },
    /**
     * Blocks a flag, lets `change` revoke it in MongoDB, and announces it: a process that dies in between leaves a
     * refused key. If the flag cannot be set, the change is made anyway, and the call rejects.
     */
    async blockAround<Result>(shard: number, flag: string, change: () => Promise<Result>): Promise<Result> {
      const [flagged] = await Promise.allSettled([block(shard, flag)]);
      const result = await change();
      if (flagged.status === 'rejected') throw flagged.reason;
      await announce(flag);
      return result;
    },
    async unblock(shard: number, flag: string): Promise<void> {
      await set(shard, flag, 0, BLOCKED);
      await announce(flag);
    },
  };
}

/** `onMissed` follows every reconnect: messages may be lost. `client` may be the chunk channel's subscriber. */
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
