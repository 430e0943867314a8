import type { EndedAnswer, IdempotencyName } from '../../../contracts/kept-answer.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';
import { inTime } from '../time-limit.ts';

/** Ended requests in Redis, from where every reader takes them; MongoDB keeps some of them for longer. */
export interface AnswerCache {
  /** Undefined: not ended, or let go. */
  read(shard: number, requestId: string): Promise<EndedAnswer | undefined>;
  /** Lets Redis keep the answer no longer than `ttlMs` from now. */
  shorten(shard: number, requestId: string, ttlMs: number): Promise<void>;
  /** Whether Redis knows which request runs or ran under an Idempotency-Key. */
  isNamed(shard: number, name: string): Promise<boolean>;
  /** Puts an answer back for `ttlMs`, and under its Idempotency-Key for `namedMs`; what is there is left alone. */
  restore(
    shard: number,
    answer: EndedAnswer & { idempotency?: IdempotencyName },
    times: { ttlMs: number; namedMs: number },
  ): Promise<void>;
}

const FIELDS = [
  ...['tenant', 'state', 'status', 'tier', 'metadata', 'sent'],
  ...['acceptedAt', 'startedAt', 'firstTokenAt', 'finishedAt'],
] as const;

export function createAnswerCache(client: RedisClient, keyspace: Keyspace): AnswerCache {
  const restore = defineScript(client, 'restore-answer');

  async function entriesOf(shard: number, requestId: string): Promise<EndedAnswer['entries']> {
    const keys = keyspace.shard(shard);
    const [rows, whole] = await Promise.all([
      client.xrange(keys.stream(requestId), '-', '+'),
      client.get(keys.answer(requestId)),
    ]);
    if (whole === null) return rows.map(([id, fields]) => ({ lastSeq: parseInt(id, 10), payload: fields[1] ?? '' }));
    // A whole answer is its last sequence number, then the entry (emit.lua).
    const lineEnd = whole.indexOf('\n');
    return [{ lastSeq: Number(whole.slice(0, lineEnd)), payload: whole.slice(lineEnd + 1) }];
  }

  return {
    async read(shard, requestId) {
      const values = await client.hmget(keyspace.shard(shard).record(requestId), ...FIELDS);
      const fields = Object.fromEntries(FIELDS.map((name, index) => [name, values[index] ?? '']));
      const { tenant: tenantId = '', state } = fields;
      if (state !== 'done') return undefined;
      return { requestId, tenantId, fields, entries: await entriesOf(shard, requestId) };
    },

    async shorten(shard, requestId, ttlMs) {
      const keys = keyspace.shard(shard);
      const names = [keys.record(requestId), keys.stream(requestId), keys.answer(requestId)];
      await Promise.all(names.map((name) => client.pexpire(name, ttlMs)));
    },

    async isNamed(shard, name) {
      return (await inTime(client.exists(keyspace.shard(shard).idempotency(name)))) === 1;
    },

    async restore(shard, { requestId, fields, entries, idempotency }, { ttlMs, namedMs }) {
      const keys = keyspace.shard(shard);
      const named = Object.entries(fields).filter(([, value]) => value !== '');
      await inTime(
        restore(
          [
            keys.record(requestId),
            keys.stream(requestId),
            idempotency === undefined ? keys.record(requestId) : keys.idempotency(idempotency.name),
          ],
          [
            ttlMs,
            idempotency === undefined ? '' : `${requestId} ${idempotency.fingerprint}`,
            namedMs,
            named.length,
            ...named.flat(),
            ...entries.flatMap(({ lastSeq, payload }) => [lastSeq, payload]),
          ],
        ),
      );
    },
  };
}
