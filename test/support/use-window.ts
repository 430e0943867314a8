import type { RedisClient } from '../../shared/redis/connection.ts';

/** What a key or a tenant takes, as windows.lua keeps it: an entry of each second. */
const ENTRY_BYTES = 14;
const REQUESTS_AT = 4;
const TOKENS_AT = 8;
const TOKENS_BYTES = 6;

async function entriesOf(redis: RedisClient, hash: string): Promise<Buffer[]> {
  const [text] = await redis.hmgetBuffer(hash, 'window');
  if (text === undefined || text === null) return [];
  return Array.from({ length: text.length / ENTRY_BYTES }, (_, index) =>
    text.subarray(index * ENTRY_BYTES, (index + 1) * ENTRY_BYTES),
  );
}

/** Moves what a key or a tenant has taken so far this many seconds into the past. */
export async function moveUse(redis: RedisClient, hash: string, seconds: number): Promise<void> {
  const entries = await entriesOf(redis, hash);
  if (entries.length === 0 || seconds === 0) return;
  for (const entry of entries) entry.writeUInt32BE(entry.readUInt32BE(0) - seconds, 0);
  await redis.hset(hash, 'window', Buffer.concat(entries));
}

/** The sums of the window as it was last written. */
export async function usedOf(redis: RedisClient, hash: string): Promise<{ requests: number; tokens: number }> {
  const entries = await entriesOf(redis, hash);
  return {
    requests: entries.reduce((sum, entry) => sum + entry.readUInt32BE(REQUESTS_AT), 0),
    tokens: entries.reduce((sum, entry) => sum + entry.readUIntBE(TOKENS_AT, TOKENS_BYTES), 0),
  };
}
