import type { RedisClient } from '../../shared/redis/connection.ts';

/** The text of a window (windows.lua) has its sums, then an entry of each second: the second and an amount like the sums. */
const SUMS_BYTES = 10;
const SECOND_BYTES = 4;
const ENTRY_BYTES = SECOND_BYTES + SUMS_BYTES;

const amountAt = (part: Buffer, at: number) => ({
  requests: part.readUInt32BE(at),
  tokens: part.readUIntBE(at + 4, 6),
});

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
  const sums = amountAt(text, 0);
  const amounts = entriesOf(text).map((entry) => amountAt(entry, SECOND_BYTES));
  const added = {
    requests: amounts.reduce((sum, { requests }) => sum + requests, 0),
    tokens: amounts.reduce((sum, { tokens }) => sum + tokens, 0),
  };
  if (sums.requests !== added.requests || sums.tokens !== added.tokens)
    throw new Error(`The sums of ${hash} are ${JSON.stringify(sums)}, its entries have ${JSON.stringify(added)}`);
  return sums;
}
