import { Command, Redis } from 'ioredis';

import type { QueueName } from '../contracts/jobs.ts';
import { releaseBytes } from '../lifecycle/release-bytes.ts';
import { storedChatJob } from '../queue/bullmq-layout.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';

/**
 * From this length on, in UTF-16 units, a body goes past the scripts: a script hashes each byte of an argument and of what it
 * reads, and copies it three times (docs/benchmarks/performance-log.md).
 */
const LONG = 32_768;

/** Whether a body goes past the scripts. Not on a cluster, which may send one of two commands elsewhere. */
function isLongBody(client: RedisClient, body: string): client is Redis {
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
async function setLongBody(client: Redis, key: string, body: string, lifeMs: number): Promise<void> {
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

/** How long a body may outlive its deadline: a process that ends the request late needs it to know what to charge. */
const MARGIN_MS = 24 * 3_600_000;

/** The longest time for which a request's body is kept; milliseconds. */
export function bodyLifeMs(requestTimeoutMs: number): number {
  return requestTimeoutMs + MARGIN_MS;
}

/** The line in which the requests of a queue wait for a worker (docs/decisions/0004-fair-queueing.md). */
export interface LineStore {
  /**
   * Puts a request into line that was admitted without its body. Returns the state in which it was found; only `accepted`
   * is put into line. Safe to repeat.
   */
  enqueue(shard: number, queue: QueueName, request: LineRequest): Promise<string>;
}

interface LineRequest {
  requestId: string;
  tenantId: string;
  body: string;
}

export function createLineStore(client: RedisClient, keyspace: Keyspace, requestTimeoutMs: number): LineStore {
  const add = defineScript(client, 'enqueue', ['window', 'line']);
  return {
    async enqueue(shard, queue, { requestId, tenantId, body }) {
      const keys = keyspace.shard(shard);
      const { name, data, opts } = storedChatJob(queue, requestId, { tenantId });
      const life = bodyLifeMs(requestTimeoutMs);
      const isLong = isLongBody(client, body);
      // The script gives the body its full life. If the server runs both commands late, when the admission has been taken back,
      // or the first of them alone, the body expires with the request's time limit.
      const stored = isLong ? setLongBody(client, keys.body(requestId), body, requestTimeoutMs) : undefined;
      const adding = add(
        [
          keys.record(requestId),
          keys.body(requestId),
          keys.job(queue, requestId),
          keys.line(queue),
          keys.marker(queue),
          keys.queueMeta(queue),
        ],
        [requestId, isLong ? '' : body, life, name, data, opts],
      );
      const [state] = await Promise.all([adding, stored]);
      // Another server has taken over between the two commands.
      if (state === 'bodiless') throw new Error('The body of the request was not stored');
      return String(state);
    },
  };
}
