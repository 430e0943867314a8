import { decodeEntry } from '../../contracts/events.ts';
import type { StreamEntry } from '../../contracts/events.ts';
import type { RedisClient } from './connection.ts';
import type { Keyspace } from './keyspace.ts';

export interface StreamReader {
  /** Entries whose last event is `fromSeq` or later, in order; the first may begin before it. */
  readFrom(shard: number, requestId: string, fromSeq: number): Promise<StreamEntry[]>;
}

export function createStreamReader(client: RedisClient, keyspace: Keyspace): StreamReader {
  return {
    async readFrom(shard, requestId, fromSeq) {
      const rows = await client.xrange(keyspace.shard(shard).stream(requestId), `${fromSeq}-0`, '+');
      return rows.map(([id, fields]) => decodeEntry(Number(id.split('-')[0]), fields[1] ?? ''));
    },
  };
}
