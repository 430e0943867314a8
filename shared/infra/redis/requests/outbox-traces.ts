import { parseSettlement } from '../../../contracts/settlement.ts';
import type { SettlementRecord } from '../../../contracts/settlement.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';

/** Whom settlement records on their way are about (outbox.ts). */
export interface OutboxTraces {
  /** Whether a record waits for which this is true. */
  holds(shard: number, isMeant: (record: SettlementRecord) => boolean): Promise<boolean>;
  /**
   * Rewrites entries that were put aside for an operator; `rewrite` gets the text, which may be no record, and returns
   * undefined to leave it. Returns how many were changed. Safe to repeat.
   */
  rewriteParked(shard: number, rewrite: (raw: string) => string | undefined): Promise<number>;
}

const PAGE = 500;

export function createOutboxTraces(client: RedisClient, keyspace: Keyspace): OutboxTraces {
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
