import { parseNotice } from '../../../contracts/finished-notice.ts';
import type { FinishedNotice } from '../../../contracts/finished-notice.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Notices of a shard that finish.lua left for webhooks, oldest first; read by one leader at a time. */
export interface NoticeStore {
  /** `notice` is undefined where the entry cannot be read. */
  read(shard: number, count: number): Promise<{ id: string; notice: FinishedNotice | undefined }[]>;
  /** Safe to repeat. */
  remove(shard: number, ids: readonly string[]): Promise<void>;
}

export function createNoticeStore(client: RedisClient, keyspace: Keyspace): NoticeStore {
  return {
    async read(shard, count) {
      const rows = await client.xrange(keyspace.shard(shard).notices, '-', '+', 'COUNT', count);
      return rows.map(([id, fields]) => ({ id, notice: parseNotice(fields[1] ?? '') }));
    },
    async remove(shard, ids) {
      if (ids.length > 0) await client.xdel(keyspace.shard(shard).notices, ...ids);
    },
  };
}
