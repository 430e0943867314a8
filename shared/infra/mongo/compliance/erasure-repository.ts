import { Schema } from 'mongoose';
import type { Connection } from 'mongoose';

import { collection, count, options, required } from '../collection.ts';

/** Nothing that was accepted up to `seq` may be stored under the entity's id any more. */
export interface ErasureRow {
  /** Tenant and pseudonym, or tenant and `*` for all of its entities. */
  _id: string;
  tenantId: string;
  seq: number;
  /** MongoDB deletes it then: whoever could still want to store something has long ended. */
  expiresAt: Date;
}

const erasureSchema = new Schema<ErasureRow>(
  { _id: required, tenantId: required, seq: count, expiresAt: { type: Date, required: true } },
  options,
).index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

export const erasureModel = collection<ErasureRow>('Erasure', 'erasures', erasureSchema);

/** Marks of deletions: what was accepted before one may store nothing under the entity's id after it. */
export interface ErasureRepository {
  /** `pseudonym` undefined: all of the tenant's entities. Safe to repeat; a later mark counts. */
  mark(tenantId: string, pseudonym: string | undefined, moment: { seq: number; now: number }): Promise<void>;
  /** The latest place in the order of acceptance up to which the entity, or any of the tenant's, was erased; 0: none. */
  latest(tenantId: string, pseudonym: string | undefined): Promise<number>;
  /** The same for many at once, by what `erasureId` makes of them. */
  latestOf(ids: readonly string[]): Promise<Map<string, number>>;
}

/** A settlement may be said again for as long as its worker lives (finish-journal.ts). */
const KEPT_MS = 30 * 24 * 3_600_000;

export function erasureId(tenantId: string, pseudonym: string | undefined): string {
  return `${tenantId} ${pseudonym ?? '*'}`;
}

export function createErasureRepository(connection: Connection): ErasureRepository {
  const erasures = erasureModel(connection);

  async function latestOf(ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await erasures.find({ _id: { $in: [...ids] } }).lean();
    return new Map(rows.map(({ _id, seq }) => [_id, seq]));
  }

  return {
    latestOf,

    async mark(tenantId, pseudonym, { seq, now }) {
      await erasures.updateOne(
        { _id: erasureId(tenantId, pseudonym) },
        { $max: { seq, expiresAt: new Date(now + KEPT_MS) }, $setOnInsert: { tenantId } },
        { upsert: true },
      );
    },

    async latest(tenantId, pseudonym) {
      const found = await latestOf([erasureId(tenantId, pseudonym), erasureId(tenantId, undefined)]);
      return Math.max(0, ...found.values());
    },
  };
}
