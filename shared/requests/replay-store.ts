import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import { seqAt } from '../domain/request-times.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';
import type { TimeLimit } from '../redis/time-limits.ts';
import { toQueueCall } from './body-store.ts';

type Reopened =
  /** Its end is removed from Redis. `fence`: that of its last delivery, if Redis still knew it. */
  | { kind: 'open'; fence: number | undefined }
  /** It runs, or has ended with text, or not in a failure. */
  | { kind: 'unchanged' };

/** Runs requests again under their own ids. */
export type ReplayStore = ReturnType<typeof createReplayStore>;

export interface ReplayStoreSettings {
  requestTimeoutMs: number;
  limit: TimeLimit;
}

export function createReplayStore(
  client: RedisClient,
  keyspace: Keyspace,
  { requestTimeoutMs, limit }: ReplayStoreSettings,
) {
  const reopen = defineScript(client, 'reopen');
  const requeue = defineScript(client, 'requeue');
  return {
    async reopen(shard: number, { requestId, tenantId }: RequestEnvelope): Promise<Reopened> {
      const keys = keyspace.shard(shard);
      const found = [keys.record(requestId), keys.stream(requestId), keys.answer(requestId), keys.ended(requestId)];
      const reply = await limit(reopen(found, [tenantId]));
      const [state, fence] = Array.isArray(reply) ? reply.map(String) : [];
      if (state !== 'failed' && state !== 'missing') return { kind: 'unchanged' };
      return { kind: 'open', fence: fence === undefined || fence === '' ? undefined : Number(fence) };
    },

    /**
     * Queues a request that was admitted again without its body, with the time of its first acceptance and this
     * fence. Returns the state in which it was found; only `accepted` is queued. Safe to repeat.
     */
    async requeue(shard: number, envelope: RequestEnvelope, fence: number): Promise<string> {
      const { requestId, tenantId, keyId, endpoint, acceptedAt } = envelope;
      const keys = keyspace.shard(shard);
      const request = { requestId, tenantId, body: JSON.stringify(envelope) };
      const [names, args] = toQueueCall(keys, queueOf(endpoint), request, requestTimeoutMs);
      const further = [acceptedAt, seqAt(acceptedAt), fence];
      const state = await limit(requeue([...names, keys.keyRpm(keyId), keys.account(tenantId)], [...args, ...further]));
      return String(state);
    },
  };
}
