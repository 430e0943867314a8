import { decodeEntry } from '../../../contracts/events.ts';
import type { StreamEntry } from '../../../contracts/events.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { unlimited } from '../time-limit.ts';
import type { TimeLimit } from '../time-limit.ts';

export interface StreamReader {
  /** Entries whose last event is `fromSeq` or later, in order, at most `count`; the first may begin before it. */
  readFrom(shard: number, requestId: string, fromSeq: number, count?: number): Promise<StreamEntry[]>;
}

/** More than any answer has. */
const ENTRIES_MAX = 1_000_000;

/** An answer kept as plain text: its last sequence number, then the entry (see emit.lua). */
function toEntry(whole: string): StreamEntry {
  const lineEnd = whole.indexOf('\n');
  return decodeEntry(Number(whole.slice(0, lineEnd)), whole.slice(lineEnd + 1));
}

export function createStreamReader(
  client: RedisClient,
  keyspace: Keyspace,
  limit: TimeLimit = unlimited,
): StreamReader {
  return {
    async readFrom(shard, requestId, fromSeq, count = ENTRIES_MAX) {
      const keys = keyspace.shard(shard);
      const [rows, whole] = await limit(
        Promise.all([
          client.xrange(keys.stream(requestId), `${fromSeq}-0`, '+', 'COUNT', count),
          client.get(keys.answer(requestId)),
        ]),
      );
      if (whole !== null) return [toEntry(whole)].filter(({ lastSeq }) => lastSeq >= fromSeq);
      return rows.map(([id, fields]) => decodeEntry(Number(id.split('-')[0]), fields[1] ?? ''));
    },
  };
}
