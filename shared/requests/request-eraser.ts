import type { KnownRequest } from '../contracts/compliance.ts';
import type { KeyMode, SearchedSpace } from '../contracts/space.ts';
import { seqAt } from '../domain/request-times.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';
import { serverTimeMs } from '../redis/time-limits.ts';
import { BILLED, TOMBSTONE_MS } from './record-store.ts';

/** A deletion reads these fields of a record. */
export interface ErasableRequest {
  requestId: string;
  state: string;
  tenantId: string;
  keyId: string;
  mode: KeyMode;
  /** Place in the order of acceptance; 0: unknown. */
  seq: number;
}

/** `later`: accepted after the given place; `busy`: not ended; `foreign`: another tenant's, or the other mode's. */
type Erased = 'erased' | 'nothing' | 'later' | 'busy' | 'foreign';

export type RequestEraser = ReturnType<typeof createRequestEraser>;

const OPEN_AT_ONCE = 1_000;
const UNLIST_AT_ONCE = 1_000;
const LEFT_AT_ONCE = 200;
/** Requests are listed by the quarter of an hour in which what they left expires (answers.lua): a day on at most. */
const LEFT_MS = 900_000;
/** Twice a day's number, because the server's clock may have been set back. */
const LEFT_PARTS = (2 * 86_400_000) / LEFT_MS;

async function lookAt(client: RedisClient, record: string, requestId: string): Promise<ErasableRequest> {
  const values = await client.hmget(record, 'state', 'tenant', 'key', 'billed', 'seq', 'acceptedAt');
  const [state, tenantId, keyId, billed, seq, acceptedAt] = values;
  return {
    requestId,
    state: state ?? 'missing',
    tenantId: tenantId ?? '',
    keyId: keyId ?? '',
    mode: billed === BILLED.test ? 'test' : 'live',
    seq: Number(seq ?? seqAt(Number(acceptedAt ?? 0))),
  };
}

export function createRequestEraser(client: RedisClient, keyspace: Keyspace) {
  const erase = defineScript(client, 'erase');

  return {
    ofEntity: (shard: number, tenantId: string, pseudonym: string): Promise<string[]> =>
      client.zrange(keyspace.shard(shard).entityRequests(tenantId, pseudonym), '0', '-1'),

    /** Ids of all requests of a shard that have not ended, of all tenants, in batches. */
    async *open(shard: number): AsyncIterable<string[]> {
      const ids = await client.zrange(keyspace.shard(shard).inflight, '0', '-1');
      for (let from = 0; from < ids.length; from += OPEN_AT_ONCE) yield ids.slice(from, from + OPEN_AT_ONCE);
    },

    /** Ids of a tenant's interactive requests that have not ended. */
    openOf: (shard: number, tenantId: string): Promise<string[]> =>
      client.zrange(keyspace.shard(shard).open(tenantId), '0', '-1'),

    /** Ended requests that left something, in batches; one may come twice. */
    async *left(shard: number, tenantId: string): AsyncIterable<string[]> {
      const keys = keyspace.shard(shard);
      const first = Math.floor((await serverTimeMs(client, keys.inflight)) / LEFT_MS);
      for (let until = first; until <= first + LEFT_PARTS; until += 1) {
        const ids = ((await client.get(keys.left(tenantId, until))) ?? '').split(' ').slice(0, -1);
        for (let from = 0; from < ids.length; from += LEFT_AT_ONCE) yield ids.slice(from, from + LEFT_AT_ONCE);
      }
    },

    /** In the order of the ids; `missing`: unknown to Redis. */
    look: (shard: number, requestIds: readonly string[]): Promise<ErasableRequest[]> =>
      Promise.all(requestIds.map((requestId) => lookAt(client, keyspace.shard(shard).record(requestId), requestId))),

    /** Erases record, body, answer and key of an ended request accepted up to `upToSeq`. Safe to repeat. */
    async erase(
      shard: number,
      { tenantId, mode }: SearchedSpace,
      { requestId, name }: KnownRequest,
      upToSeq: number,
    ): Promise<Erased> {
      const keys = keyspace.shard(shard);
      const record = keys.record(requestId);
      const reply = await erase(
        [
          record,
          keys.body(requestId),
          keys.stream(requestId),
          keys.answer(requestId),
          keys.inflight,
          name === undefined ? record : keys.idempotency(name),
        ],
        [requestId, tenantId, upToSeq, TOMBSTONE_MS, BILLED[mode]],
      );
      if (reply === 1) return 'erased';
      // erase.lua knows no other words.
      return reply === 0 ? 'nothing' : (reply as 'later' | 'busy' | 'foreign');
    },

    /** Safe to repeat. */
    async unlist(shard: number, tenantId: string, pseudonym: string, requestIds: readonly string[]): Promise<void> {
      const list = keyspace.shard(shard).entityRequests(tenantId, pseudonym);
      for (let from = 0; from < requestIds.length; from += UNLIST_AT_ONCE)
        await client.zrem(list, ...requestIds.slice(from, from + UNLIST_AT_ONCE));
    },
  };
}
