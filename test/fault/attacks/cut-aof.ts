import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDER = 'appendonlydir';

/** The file that Redis appends to. */
async function latestFile(redisDir: string): Promise<string> {
  const names = (await readdir(join(redisDir, FOLDER))).filter((name) => name.endsWith('.incr.aof'));
  const [latest] = names.sort((one, other) => numberOf(other) - numberOf(one));
  if (latest === undefined) throw new Error(`There is no append-only file in ${redisDir}.`);
  return join(redisDir, FOLDER, latest);
}

const numberOf = (name: string) => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? 0);

/** How much Redis has written, in bytes. */
export async function aofBytes(redisDir: string): Promise<number> {
  return (await stat(await latestFile(redisDir))).size;
}

/** Takes the end of the file of a Redis that does not run, as a power cut does. */
export async function cutAof(redisDir: string, toBytes: number): Promise<void> {
  await truncate(await latestFile(redisDir), toBytes);
}
