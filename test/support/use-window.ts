import type { RedisClient } from '../../shared/redis/connection.ts';

/** What a key or a tenant takes, as windows.lua keeps it: its sums, then an entry of each second. */
const SUMS_BYTES = 10;
const ENTRY_BYTES = 14;
const REQUESTS_AT = 4;
const TOKENS_AT = 8;
const TOKENS_BYTES = 6;

async function readText(redis: RedisClient, hash: string): Promise<Buffer> {
  const [text] = await redis.hmgetBuffer(hash, 'minute');
  return text ?? Buffer.alloc(0);
}

function entriesOf(text: Buffer): Buffer[] {
  return Array.from({ length: Math.floor(text.length / ENTRY_BYTES) }, (_, index) =>
    text.subarray(SUMS_BYTES + index * ENTRY_BYTES, SUMS_BYTES + (index + 1) * ENTRY_BYTES),
  );
}

/** Moves what a key or a tenant has taken so far this many seconds into the past. */
export async function moveUse(redis: RedisClient, hash: string, seconds: number): Promise<void> {
  const text = await readText(redis, hash);
  const entries = entriesOf(text);
  if (entries.length === 0 || seconds === 0) return;
  for (const entry of entries) entry.writeUInt32BE(entry.readUInt32BE(0) - seconds, 0);
  // The entries are parts of the text.
  await redis.hset(hash, 'minute', text);
}

/** The sums of the window as it was last written. Throws if they are not those of its entries. */
export async function usedOf(redis: RedisClient, hash: string): Promise<{ requests: number; tokens: number }> {
  const text = await readText(redis, hash);
  if (text.length === 0) return { requests: 0, tokens: 0 };
  const entries = entriesOf(text);
  const sums = { requests: text.readUInt32BE(0), tokens: text.readUIntBE(REQUESTS_AT, TOKENS_BYTES) };
  const added = {
    requests: entries.reduce((sum, entry) => sum + entry.readUInt32BE(REQUESTS_AT), 0),
    tokens: entries.reduce((sum, entry) => sum + entry.readUIntBE(TOKENS_AT, TOKENS_BYTES), 0),
  };
  if (sums.requests !== added.requests || sums.tokens !== added.tokens)
    throw new Error(`The sums of ${hash} are ${JSON.stringify(sums)}, its entries have ${JSON.stringify(added)}`);
  return sums;
}
