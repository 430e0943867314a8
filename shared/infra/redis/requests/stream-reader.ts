import { decodeMessage } from '../../../contracts/events.ts';
import type { StreamEntry } from '../../../contracts/events.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { unlimited } from '../timing.ts';
import type { TimeLimit } from '../timing.ts';

/** Reads the events of a request, running or ended, from its stream or from the one entry of a whole answer. */
export interface StreamReader {
  /** Entries whose last event is `fromSeq` or later, in order, at most `count`; the first may begin before it. */
  readFrom(shard: number, requestId: string, fromSeq: number, count?: number): Promise<StreamEntry[]>;
}

/** More than any answer has. */
const ENTRIES_MAX = 1_000_000;

/** Splits an answer that is stored as plain text into head and payload (emit_whole in emit.lua). */
export function splitWhole(whole: string): { head: string; payload: string } {
  const lineEnd = whole.indexOf('\n');
  return { head: whole.slice(0, lineEnd), payload: whole.slice(lineEnd + 1) };
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
