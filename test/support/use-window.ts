import type { RedisClient } from '../../shared/redis/connection.ts';

/** What a key or a tenant takes, as use.lua keeps it: an entry of each second, and the newest second by itself. */
const ENTRY_BYTES = 14;
const REQUESTS_AT = 4;
const TOKENS_AT = 8;
const TOKENS_BYTES = 6;
const NEWEST_BYTES = 24;
/** The sums of what was before the newest second. */
const BEFORE_REQUESTS_AT = 14;
const BEFORE_TOKENS_AT = 18;
const CORRECTION_BYTES = 10;

async function read(redis: RedisClient, hash: string): Promise<{ newest: Buffer | undefined; entries: Buffer }> {
  const [newest, entries] = await redis.hmgetBuffer(hash, 'u', 'w');
  return { newest: newest ?? undefined, entries: entries ?? Buffer.alloc(0) };
}

/** Moves what a key or a tenant has taken so far this many seconds into the past. */
export async function moveUse(redis: RedisClient, hash: string, seconds: number): Promise<void> {
  const { newest, entries } = await read(redis, hash);
  if (newest === undefined || seconds === 0) return;
  const back = (text: Buffer, at: number) => text.writeUInt32BE(text.readUInt32BE(at) - seconds, at);
  for (let at = 0; at < entries.length; at += ENTRY_BYTES) back(entries, at);
  back(newest, 0);
  for (let at = NEWEST_BYTES; at < newest.length; at += CORRECTION_BYTES) back(newest, at);
  await redis.hset(hash, 'u', newest, 'w', entries);
}

/** The sums of the window, as admission goes by them. */
export async function usedOf(redis: RedisClient, hash: string): Promise<{ requests: number; tokens: number }> {
  const { newest } = await read(redis, hash);
  if (newest === undefined) return { requests: 0, tokens: 0 };
  return {
    requests: newest.readUInt32BE(REQUESTS_AT) + newest.readUInt32BE(BEFORE_REQUESTS_AT),
    tokens: newest.readUIntBE(TOKENS_AT, TOKENS_BYTES) + newest.readUIntBE(BEFORE_TOKENS_AT, TOKENS_BYTES),
  };
}

/** What the single seconds of the window add up to. */
export async function tokensBySecond(redis: RedisClient, hash: string): Promise<number> {
  const { newest = Buffer.alloc(NEWEST_BYTES), entries } = await read(redis, hash);
  let sum = newest.readUIntBE(TOKENS_AT, TOKENS_BYTES);
  for (let at = 0; at < entries.length; at += ENTRY_BYTES) sum += entries.readUIntBE(at + TOKENS_AT, TOKENS_BYTES);
  for (let at = NEWEST_BYTES; at < newest.length; at += CORRECTION_BYTES) sum += newest.readIntBE(at + 4, TOKENS_BYTES);
  return sum;
}
