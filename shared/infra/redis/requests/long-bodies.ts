import { Command, Redis } from 'ioredis';

import { releaseBytes } from '../../../lifecycle/release-bytes.ts';
import type { RedisClient } from '../connection.ts';

/**
 * From this length on, in UTF-16 units, a body goes past the scripts: a script hashes each byte of an argument and of what it
 * reads, and copies it three times (docs/benchmarks/performance-log.md).
 */
const LONG = 32_768;

/** Whether a body goes past the scripts. Not on a cluster, which may send one of two commands elsewhere. */
export function isLongBody(client: RedisClient, body: string): client is Redis {
  return client instanceof Redis && body.length > LONG;
}

/** `SET key value PX ms` as it is written: ioredis would make two more strings as long. */
class SetLong extends Command {
  readonly #bytes: Buffer;

  constructor(key: string, bytes: Buffer) {
    super('set', [key]);
    this.#bytes = bytes;
  }

  override toWritable(): Buffer {
    return this.#bytes;
  }
}

function encodeSet(key: string, body: string, lifeMs: number): Buffer {
  const life = String(lifeMs);
  const head = `*5\r\n$3\r\nSET\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n$${Buffer.byteLength(body)}\r\n`;
  const tail = `\r\n$2\r\nPX\r\n$${life.length}\r\n${life}\r\n`;
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(head) + Buffer.byteLength(body) + tail.length);
  let at = bytes.write(head);
  at += bytes.write(body, at);
  bytes.write(tail, at);
  return bytes;
}

/** Stores a body for `lifeMs`; to be called before the script that puts its request into line. Safe to repeat. */
export async function setLongBody(client: Redis, key: string, body: string, lifeMs: number): Promise<void> {
  const bytes = encodeSet(key, body, lifeMs);
  const command = new SetLong(key, bytes);
  client.sendCommand(command);
  await command.promise;
  // A command that was answered has been sent whole. One that failed may be sent again, so its bytes are not released.
  releaseBytes(bytes);
}

/** Reads a body that was stored so. Undefined: Redis does not have it any more. */
export async function getLongBody(client: RedisClient, key: string): Promise<string | undefined> {
  const bytes = await client.getBuffer(key);
  if (bytes === null) return undefined;
  const body = bytes.toString();
  releaseBytes(bytes);
  return body;
}
