import { parseNotice } from '../contracts/finished-notice.ts';
import type { FinishedNotice } from '../contracts/finished-notice.ts';
import { parseSettlement } from '../contracts/settlement.ts';
import type { SettlementRecord } from '../contracts/settlement.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keyspace.ts';
import { streamPages } from '../redis/pages.ts';
import type { StreamRow } from '../redis/pages.ts';
import { defineScript } from '../redis/scripts.ts';
import { serverTimeMs } from '../redis/time-limits.ts';

export interface OutboxEntry {
  id: string;
  /** Undefined: the entry cannot be read and is a dead letter. */
  record: SettlementRecord | undefined;
  raw: string;
}

export type ReadableEntry = OutboxEntry & { record: SettlementRecord };

export function isReadable(entry: OutboxEntry): entry is ReadableEntry {
  return entry.record !== undefined;
}

/** Settlement records on their way from Redis to MongoDB: one stream per shard, read by one leader at a time. */
export type Outbox = ReturnType<typeof createOutbox>;

interface Requeued {
  requeued: number;
  /** Dead letters that cannot be read, so that they stay. */
  left: number;
}

export interface Backlog {
  outbox: number;
  deadLetters: number;
  /** The oldest record has waited so long; 0: none does. */
  lagSeconds: number;
}

function toEntry([id, fields]: StreamRow): OutboxEntry {
  const raw = fields[1] ?? '';
  return { id, raw, record: parseSettlement(raw) };
}

function createDeadLetters(client: RedisClient, keyspace: Keyspace) {
  const move = defineScript(client, 'dead-letter');
  return {
    /** Keeps an entry that cannot be booked among the dead letters. */
    async deadLetter(shard: number, { id, raw }: OutboxEntry): Promise<void> {
      const { outbox, deadLetters } = keyspace.shard(shard);
      await move([outbox, deadLetters], [id, raw]);
    },

    /** Returns readable dead letters to the outbox; safe to repeat and to run twice at once. */
    async requeue(shard: number): Promise<Requeued> {
      const { outbox, deadLetters } = keyspace.shard(shard);
      const [newest] = await client.xrevrange(deadLetters, '+', '-', 'COUNT', 1);
      const done = { requeued: 0, left: 0 };
      if (newest === undefined) return done;
      // A record that fails again lands behind the newest one, so this ends.
      for await (const rows of streamPages(client, deadLetters, { to: newest[0] })) {
        for (const { id, raw, record } of rows.map(toEntry)) {
          if (record === undefined) {
            done.left += 1;
            continue;
          }
          done.requeued += Number(await move([deadLetters, outbox], [id, raw]));
        }
      }
      return done;
    },
  };
}

export function createOutbox(client: RedisClient, keyspace: Keyspace) {
  const acknowledge = defineScript(client, 'acknowledge');

  /** By shard, the last id that this process has read; a new leader reads all there is. */
  const readUpTo = new Map<number, string>();

  return {
    /** `redelivered`: read by this process before, and not acknowledged. */
    async read(shard: number, from: 'redelivered' | 'new', count: number): Promise<OutboxEntry[]> {
      const stream = keyspace.shard(shard).outbox;
      const last = readUpTo.get(shard);
      if (from === 'redelivered') {
        const rows = last === undefined ? [] : await client.xrange(stream, '-', last, 'COUNT', count);
        return rows.map(toEntry);
      }
      const rows = await client.xrange(stream, last === undefined ? '-' : `(${last}`, '+', 'COUNT', count);
      const newest = rows.at(-1)?.[0];
      if (newest !== undefined) readUpTo.set(shard, newest);
      return rows.map(toEntry);
    },

    /**
     * Removes booked entries whose charges are no longer pending: where Redis has lost the balance that was published
     * of them, they stay and are read again. Safe to repeat.
     */
    async acknowledge(shard: number, entries: readonly ReadableEntry[]): Promise<void> {
      const keys = keyspace.shard(shard);
      const byTenant = [...Map.groupBy(entries, ({ record }) => record.tenantId)];
      await acknowledge(
        [keys.outbox, ...byTenant.map(([tenantId]) => keys.pending(tenantId))],
        [...byTenant.flatMap(([, own]) => [own.length, ...own.flatMap(({ id, record }) => [id, record.requestId])])],
      );
    },

    ...createDeadLetters(client, keyspace),

    length: (shard: number): Promise<number> => client.xlen(keyspace.shard(shard).outbox),

    async backlog(shard: number): Promise<Backlog> {
      const keys = keyspace.shard(shard);
      const [outbox, deadLetters, [oldest], now] = await Promise.all([
        client.xlen(keys.outbox),
        client.xlen(keys.deadLetters),
        client.xrange(keys.outbox, '-', '+', 'COUNT', 1),
        serverTimeMs(client, keys.outbox),
      ]);
      // The id begins with Redis's time when the record came.
      const waitingSince = oldest === undefined ? now : parseInt(oldest[0], 10);
      return { outbox, deadLetters, lagSeconds: Math.max(0, (now - waitingSince) / 1000) };
    },
  };
}

/** Finds and rewrites settlement records that wait in the outbox or are dead letters, for deletions. */
export type OutboxSearch = ReturnType<typeof createOutboxSearch>;

export function createOutboxSearch(client: RedisClient, keyspace: Keyspace) {
  const move = defineScript(client, 'dead-letter');

  async function* entriesOf(stream: string, from?: string): AsyncGenerator<{ id: string; raw: string }> {
    for await (const rows of streamPages(client, stream, { from })) {
      for (const [id, fields] of rows) yield { id, raw: fields[1] ?? '' };
    }
  }

  return {
    /** The first match's id; undefined: none. `from`: begin there, as entries are added at the end only. */
    async find(
      shard: number,
      isMeant: (record: SettlementRecord) => boolean,
      from?: string,
    ): Promise<string | undefined> {
      for await (const { id, raw } of entriesOf(keyspace.shard(shard).outbox, from)) {
        const record = parseSettlement(raw);
        if (record !== undefined && isMeant(record)) return id;
      }
      return undefined;
    },

    /** `rewrite` gets any text, even no record; undefined leaves it. Returns the number changed. Safe to repeat. */
    async rewriteDeadLetters(shard: number, rewrite: (raw: string) => string | undefined): Promise<number> {
      const { deadLetters } = keyspace.shard(shard);
      let changed = 0;
      for await (const { id, raw } of entriesOf(deadLetters)) {
        const text = rewrite(raw);
        if (text === undefined) continue;
        changed += Number(await move([deadLetters, deadLetters], [id, text]));
      }
      return changed;
    },
  };
}

/** finish.lua leaves these for webhooks; one leader at a time reads them, oldest first. */
export type NoticeStore = ReturnType<typeof createNoticeStore>;

export function createNoticeStore(client: RedisClient, keyspace: Keyspace) {
  return {
    /** `notice` undefined: the entry is unreadable. */
    async read(shard: number, count: number): Promise<{ id: string; notice: FinishedNotice | undefined }[]> {
      const rows = await client.xrange(keyspace.shard(shard).notices, '-', '+', 'COUNT', count);
      return rows.map(([id, fields]) => ({ id, notice: parseNotice(fields[1] ?? '') }));
    },
    /** Safe to repeat. */
    async remove(shard: number, ids: readonly string[]): Promise<void> {
      if (ids.length > 0) await client.xdel(keyspace.shard(shard).notices, ...ids);
    },
  };
}
