import { parseSettlement } from '../../../contracts/settlement.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Whom settlement records on their way are about (outbox.ts). */
export interface OutboxTraces {
  /**
   * The first waiting entry whose record is meant, as its id; undefined: none is. `from`: the entry to begin with, for
   * entries are added at the end only.
   */
  find(shard: number, isMeant: (record: SettlementRecord) => boolean, from?: string): Promise<string | undefined>;
  /**
   * Rewrites dead letters; `rewrite` gets the text, which may be no record, and returns
   * undefined to leave it. Returns how many were changed. Safe to repeat.
   */
  rewriteDeadLetters(shard: number, rewrite: (raw: string) => string | undefined): Promise<number>;
}

const PAGE = 500;

export function createOutboxTraces(client: RedisClient, keyspace: Keyspace): OutboxTraces {
  async function* entriesOf(stream: string, start = '-'): AsyncGenerator<{ id: string; raw: string }> {
    for (let from = start; ;) {
      const entries = await client.xrange(stream, from, '+', 'COUNT', PAGE);
      for (const [id, fields] of entries) yield { id, raw: fields[1] ?? '' };
      const last = entries.at(-1)?.[0];
      if (entries.length < PAGE || last === undefined) return;
      from = `(${last}`;
    }
  }

  return {
    async find(shard, isMeant, from) {
      for await (const { id, raw } of entriesOf(keyspace.shard(shard).outbox, from)) {
        const record = parseSettlement(raw);
        if (record !== undefined && isMeant(record)) return id;
      }
      return undefined;
    },

    async rewriteDeadLetters(shard, rewrite) {
      const { deadLetters } = keyspace.shard(shard);
      let changed = 0;
      for await (const { id, raw } of entriesOf(deadLetters)) {
        const text = rewrite(raw);
        if (text === undefined) continue;
        // The new one first: at worst there are two, and the ledger takes a request once.
        await client.xadd(deadLetters, '*', 's', text);
        await client.xdel(deadLetters, id);
        changed += 1;
      }
      return changed;
    },
  };
}
