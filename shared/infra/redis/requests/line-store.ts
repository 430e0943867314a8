import type { QueueName } from '../../../contracts/jobs.ts';
import { storedChatJob } from '../../queue/bullmq-layout.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { isLongBody, setLongBody } from './long-bodies.ts';

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
