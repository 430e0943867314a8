import { parseSettlement } from '../../../contracts/settlement.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { defineScript } from '../scripts.ts';

export interface OutboxEntry {
  id: string;
  /** Undefined: the entry cannot be read and is to be parked. */
  record: SettlementRecord | undefined;
  raw: string;
}

/** Settlement records on their way from Redis to MongoDB: one stream per shard, read by one leader at a time. */
export interface Outbox {
  /** `redelivered`: what was read before and never acknowledged; else what is new. */
  read(shard: number, from: 'redelivered' | 'new', count: number): Promise<OutboxEntry[]>;
  /** Safe to repeat. */
  acknowledge(shard: number, ids: readonly string[]): Promise<void>;
  /** Puts an entry that never succeeds aside, for an operator. */
  park(shard: number, entry: OutboxEntry): Promise<void>;
  length(shard: number): Promise<number>;
}

const GROUP = 'settlement';
/** One name for every leader: what the last one left unacknowledged belongs to the next one at once. */
const CONSUMER = 'leader';

type StreamRow = [id: string, fields: string[] | null];

function toEntry([id, fields]: StreamRow): OutboxEntry {
  const raw = fields?.[1] ?? '';
  return { id, raw, record: parseSettlement(raw) };
}

function isMissingGroup(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOGROUP');
}

export function createOutbox(client: RedisClient, keyspace: Keyspace): Outbox {
  const acknowledge = defineScript(client, 'acknowledge');

  async function ensureGroup(stream: string): Promise<void> {
    await client.xgroup('CREATE', stream, GROUP, '0', 'MKSTREAM').catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('BUSYGROUP'))) throw error;
    });
  }

  async function readGroup(stream: string, from: string, count: number): Promise<StreamRow[]> {
    const reply = await client.xreadgroup('GROUP', GROUP, CONSUMER, 'COUNT', count, 'STREAMS', stream, from);
    return reply?.[0]?.[1] ?? [];
  }

  return {
    async read(shard, from, count) {
      const stream = keyspace.shard(shard).outbox;
      const position = from === 'new' ? '>' : '0';
      try {
        return (await readGroup(stream, position, count)).map(toEntry);
      } catch (error) {
        // A new shard, or a Redis that came back empty.
        if (!isMissingGroup(error)) throw error;
        await ensureGroup(stream);
        return (await readGroup(stream, position, count)).map(toEntry);
      }
    },

    async acknowledge(shard, ids) {
      if (ids.length === 0) return;
      await acknowledge([keyspace.shard(shard).outbox], [GROUP, ...ids]);
    },

    async park(shard, { id, raw }) {
      const { outbox, parked } = keyspace.shard(shard);
      // Apart, so that nothing is taken out that could not be put aside. At worst it is put aside twice.
      await client.xadd(parked, '*', 's', raw);
      await acknowledge([outbox], [GROUP, id]);
    },

    length: (shard) => client.xlen(keyspace.shard(shard).outbox),
  };
}

/** Finds and rewrites settlement records that wait in the outbox or were parked, for deletions. */
export interface OutboxSearch {
  /** Whether a record waits for which this is true. */
  holds(shard: number, isMeant: (record: SettlementRecord) => boolean): Promise<boolean>;
  /**
   * Rewrites entries that were put aside for an operator; `rewrite` gets the text, which may be no record, and returns
   * undefined to leave it. Returns how many were changed. Safe to repeat.
   */
  rewriteParked(shard: number, rewrite: (raw: string) => string | undefined): Promise<number>;
}

const PAGE = 500;

export function createOutboxSearch(client: RedisClient, keyspace: Keyspace): OutboxSearch {
  async function* entriesOf(stream: string): AsyncGenerator<{ id: string; raw: string }> {
    for (let from = '-'; ;) {
      const entries = await client.xrange(stream, from, '+', 'COUNT', PAGE);
      for (const [id, fields] of entries) yield { id, raw: fields[1] ?? '' };
      const last = entries.at(-1)?.[0];
      if (entries.length < PAGE || last === undefined) return;
      from = `(${last}`;
    }
  }

  return {
    async holds(shard, isMeant) {
      for await (const { raw } of entriesOf(keyspace.shard(shard).outbox)) {
        const record = parseSettlement(raw);
        if (record !== undefined && isMeant(record)) return true;
      }
      return false;
    },

    async rewriteParked(shard, rewrite) {
      const { parked } = keyspace.shard(shard);
      let changed = 0;
      for await (const { id, raw } of entriesOf(parked)) {
        const text = rewrite(raw);
        if (text === undefined) continue;
        // The new one first: at worst there are two, and the ledger takes a request once.
        await client.xadd(parked, '*', 's', text);
        await client.xdel(parked, id);
        changed += 1;
      }
      return changed;
    },
  };
}
