import { queueOf } from '../contracts/jobs.ts';
import type { RequestEnvelope } from '../contracts/jobs.ts';
import { seqAt } from '../domain/request-times.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';
import type { TimeLimit } from '../redis/time-limits.ts';
import { toQueueCall } from './body-store.ts';

type Reopened =
  /** Redis has no end any more. `fence`: of the last delivery, if Redis still knew it. */
  | { kind: 'open'; fence: number | undefined }
  /** It runs, or has ended with text, or not in a failure. */
  | { kind: 'unchanged' };

/** A replay keeps the request's id. */
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
     * Queues a request that was admitted again without its body, with this fence and its first time of acceptance.
     * Returns the found state; only `accepted` is queued. Safe to repeat.
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
