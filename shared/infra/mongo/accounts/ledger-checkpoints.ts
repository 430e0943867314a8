import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import type { LedgerGroup } from '../../../domain/usage/compare-book.ts';
import { collection, count, options, required, text } from '../collection.ts';
import { isDuplicateKey } from '../connection.ts';

/**
 * A tenant's ledger added up to a time. Entries get times that rise with every booking (see `moveAccount`) and never
 * change their amounts, so what was added up once need not be read again.
 */
export interface LedgerCheckpoint {
  /** Every entry with a `createdAt` up to here is in the sums; milliseconds since the epoch. */
  throughMs: number;
  groups: LedgerGroup[];
  /** Days of acceptance whose usage roll-ups have not been found to agree since requests were added to them. */
  uncheckedDaysMs: number[];
}

export interface LedgerCheckpointRow extends Omit<LedgerCheckpoint, 'groups'> {
  /** The tenant's id. */
  _id: string;
  groups: (Omit<LedgerGroup, 'mode' | 'dayMs'> & { mode?: string | undefined; dayMs?: number | undefined })[];
}

const group = new Schema(
  {
    type: required,
    mode: text,
    dayMs: { type: Number },
    amountMicro: count,
    requests: count,
    promptTokens: count,
    completionTokens: count,
    costMicro: count,
    estimatedRequests: count,
  },
  { _id: false, id: false },
);
const checkpointSchema = new Schema<LedgerCheckpointRow>(
  { _id: required, throughMs: count, groups: [group], uncheckedDaysMs: [Number] },
  options,
);

export const ledgerCheckpointModel = collection<LedgerCheckpointRow>(
  'LedgerCheckpoint',
  'ledger_checkpoints',
  checkpointSchema,
);

export const NO_CHECKPOINT: LedgerCheckpoint = { throughMs: -1, groups: [], uncheckedDaysMs: [] };

export interface LedgerCheckpoints {
  read(tenantId: string): Promise<LedgerCheckpoint | undefined>;
  /** Replaces the checkpoint that ends at `fromMs`; false: another process has moved it, and nothing is changed. */
  advance(tenantId: string, fromMs: number, next: LedgerCheckpoint): Promise<boolean>;
  /** Forgets the checkpoint: the ledger is added up anew. */
  discard(tenantId: string): Promise<void>;
}

export function createLedgerCheckpoints(connection: Connection): LedgerCheckpoints {
  const ledgerCheckpoints = ledgerCheckpointModel(connection);
  return {
    async read(tenantId) {
      const row = await ledgerCheckpoints.findById(tenantId).lean();
      if (row === null) return undefined;
      const { throughMs, uncheckedDaysMs } = row;
      return {
        throughMs,
        uncheckedDaysMs,
        groups: row.groups.map((each) => ({ mode: undefined, dayMs: undefined, ...each })),
      };
    },

    async advance(tenantId, fromMs, { throughMs, groups, uncheckedDaysMs }) {
      const isFirst = fromMs === NO_CHECKPOINT.throughMs;
      try {
        const { matchedCount, upsertedCount } = await ledgerCheckpoints.updateOne(
          { _id: tenantId, throughMs: fromMs },
          { $set: { throughMs, groups, uncheckedDaysMs } },
          { upsert: isFirst },
        );
        return matchedCount + upsertedCount > 0;
      } catch (error) {
        // There is one already that ends elsewhere.
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },

    async discard(tenantId) {
      await ledgerCheckpoints.deleteOne({ _id: tenantId });
    },
  };
}
