import { randomUUID } from 'node:crypto';
import { readdir, readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';

import type { RedisInspector } from '../lab/inspect-redis.ts';

const FOLDER = 'appendonlydir';

export interface AofMark {
  text: string;
  /** Requests that Redis knew when the mark was set. */
  known: ReadonlySet<string>;
}

/** The file that Redis appends to. */
async function latestFile(redisDir: string): Promise<string> {
  const names = (await readdir(join(redisDir, FOLDER))).filter((name) => name.endsWith('.incr.aof'));
  const [latest] = names.sort((one, other) => numberOf(other) - numberOf(one));
  if (latest === undefined) throw new Error(`There is no append-only file in ${redisDir}.`);
  return join(redisDir, FOLDER, latest);
}

const numberOf = (name: string) => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? 0);

/**
 * Marks a place in the append-only file. The length of the file says nothing of that: while the disk is busy with its last
 * `fsync`, Redis keeps what it has acknowledged since to itself, for up to two seconds.
 */
export async function markAof({ client, keys }: Pick<RedisInspector, 'client' | 'keys'>): Promise<AofMark> {
  const text = randomUUID();
  const prefix = keys.record('');
  const found = await client
    .multi()
    .set(`${keys.tag}:mark`, text)
    .keys(`${prefix.replace(/[[\]?*]/g, '\\$&')}*`)
    .exec();
  // The second reply of the two, without an error.
  const names = (found?.[1]?.[1] ?? []) as string[];
  return { text, known: new Set(names.map((name) => name.slice(prefix.length))) };
}

/** Whether Redis has written the mark. */
export async function hasMark(redisDir: string, { text }: AofMark): Promise<boolean> {
  return (await readFile(await latestFile(redisDir))).includes(text);
}

/**
 * Takes what comes behind the mark, but for so many bytes, out of the file of a Redis that does not run, as a power cut
 * does. Returns how many bytes that were.
 */
export async function cutAof(redisDir: string, { text }: AofMark, tornBytes: number): Promise<number> {
  const file = await latestFile(redisDir);
  const written = await readFile(file);
  const end = Math.min(written.length, written.indexOf(text) + Buffer.byteLength(`${text}\r\n`) + tornBytes);
  await truncate(file, end);
  return written.length - end;
}
