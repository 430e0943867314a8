import type { RedisClient } from './connection.ts';

/** Redis's clock, by which all times of a request go; milliseconds since the epoch. */
export async function serverTimeMs(client: RedisClient): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
