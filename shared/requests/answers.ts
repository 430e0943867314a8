import { decodeMessage } from '../contracts/events.ts';
import type { StreamEntry } from '../contracts/events.ts';
import { ANSWER_FIELDS } from '../contracts/jobs.ts';
import type { AnswerFields, IdempotencyName, EndedAnswer } from '../contracts/jobs.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace, ShardKeys } from '../redis/keyspace.ts';
import { defineScript } from '../redis/scripts.ts';
import { inTime, unlimited } from '../redis/time-limits.ts';
import type { TimeLimit } from '../redis/time-limits.ts';

/** A running request's events are in its stream; a whole answer is one entry. */
export type StreamReader = ReturnType<typeof createStreamReader>;

/** No answer has as many. */
const ENTRIES_MAX = 1_000_000;

/** Splits an answer that is stored as plain text into head and payload (emit_whole in answers.lua). */
function splitWhole(whole: string): { head: string; payload: string } {
  const lineEnd = whole.indexOf('\n');
  return { head: whole.slice(0, lineEnd), payload: whole.slice(lineEnd + 1) };
}

export function createStreamReader(client: RedisClient, keyspace: Keyspace, limit: TimeLimit = unlimited) {
  return {
    /** In order, at most `count`; the first entry may begin before `fromSeq`. */
    async readFrom(
      shard: number,
      requestId: string,
      fromSeq: number,
      count: number = ENTRIES_MAX,
    ): Promise<StreamEntry[]> {
      const keys = keyspace.shard(shard);
      const [rows, whole] = await limit(
        Promise.all([
          client.xrange(keys.stream(requestId), `${fromSeq}-0`, '+', 'COUNT', count),
          client.get(keys.answer(requestId)),
        ]),
      );
      if (whole !== null) {
        const { head, payload } = splitWhole(whole);
        const entry = decodeMessage(head, payload);
        return entry.lastSeq >= fromSeq ? [entry] : [];
      }
      // `d` and its payload, then perhaps `w` and the writer.
      return rows.map(([id, [, payload = '', , writer]]) =>
        decodeMessage(`${parseInt(id, 10)}${writer === undefined ? '' : ` ${writer}`}`, payload),
      );
    },
  };
}

/** Moves ended requests, record and events, out of Redis and back: MongoDB stores some for longer. */
export type AnswerCache = ReturnType<typeof createAnswerCache>;

async function entriesOf(client: RedisClient, keys: ShardKeys, requestId: string): Promise<EndedAnswer['entries']> {
  const [rows, whole] = await Promise.all([
    client.xrange(keys.stream(requestId), '-', '+'),
    client.get(keys.answer(requestId)),
  ]);
  if (whole !== null) {
    const { head, payload } = splitWhole(whole);
    return [{ lastSeq: parseInt(head, 10), payload }];
  }
  return rows.map(([id, fields]) => ({ lastSeq: parseInt(id, 10), payload: fields[1] ?? '' }));
}

type RestoredAnswer = EndedAnswer & { idempotency?: IdempotencyName };

function toRestoreCall(
  keys: ShardKeys,
  { requestId, tenantId, fields, entries, idempotency }: RestoredAnswer,
  { ttlMs, namedMs }: { ttlMs: number; namedMs: number },
): [keys: string[], args: (string | number)[]] {
  const known = Object.entries(fields).filter(([, value]) => value !== '');
  const named = namedMs > 0 ? idempotency : undefined;
  return [
    [
      keys.record(requestId),
      keys.stream(requestId),
      named === undefined ? keys.record(requestId) : keys.idempotency(named.name),
      keys.answer(requestId),
    ],
    [
      ttlMs,
      named === undefined ? '' : `${requestId} ${named.fingerprint} ${tenantId}`,
      namedMs,
      known.length,
      ...known.flat(),
      ...entries.flatMap(({ lastSeq, payload }) => [lastSeq, payload]),
    ],
  ];
}

export function createAnswerCache(client: RedisClient, keyspace: Keyspace) {
  const restore = defineScript(client, 'restore-answer');
  const shorten = defineScript(client, 'shorten-answer');

  return {
    /** Undefined: not ended, expired, or Redis came back without the end between two reads. */
    async read(shard: number, requestId: string): Promise<EndedAnswer | undefined> {
      const values = await client.hmget(keyspace.shard(shard).record(requestId), ...ANSWER_FIELDS);
      const fields: AnswerFields = Object.fromEntries(ANSWER_FIELDS.map((name, index) => [name, values[index] ?? '']));
      const { tenant: tenantId = '', state } = fields;
      if (state !== 'done') return undefined;
      const entries = await entriesOf(client, keyspace.shard(shard), requestId);
      if (entries.at(-1)?.lastSeq !== Number(fields['lastSeq'])) return undefined;
      return { requestId, tenantId, fields, entries };
    },

    /** Expires a read answer in `ttlMs`, unless the request has been run again since. Safe to repeat. */
    async shorten(
      shard: number,
      { requestId, fields }: Pick<EndedAnswer, 'requestId' | 'fields'>,
      ttlMs: number,
    ): Promise<void> {
      const keys = keyspace.shard(shard);
      const names = [keys.record(requestId), keys.stream(requestId), keys.answer(requestId)];
      await shorten(names, [fields['finishedAt'] ?? '', ttlMs]);
    },

    async isNamed(shard: number, name: string): Promise<boolean> {
      return (await inTime(client.exists(keyspace.shard(shard).idempotency(name)))) === 1;
    },

    /** Restores an answer for `ttlMs`, and its Idempotency-Key, if any, for `namedMs`; leaves what exists. */
    async restore(shard: number, answer: RestoredAnswer, times: { ttlMs: number; namedMs: number }): Promise<void> {
      await inTime(restore(...toRestoreCall(keyspace.shard(shard), answer, times)));
    },
  };
}
