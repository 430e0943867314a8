import type { Connection } from 'mongoose';

import type { SearchedSpace, Space } from '../../contracts/space.ts';
import { collection } from '../collection.ts';

/** Requests accepted up to `seq` may no longer be stored under the entity's id. */
export interface ErasureRow {
  /** Tenant and pseudonym, or tenant and `*` for all its entities; with the mode if it concerns one. */
  _id: string;
  tenantId: string;
  seq: number;
  /** By then, any process that could still store something has ended. */
  expiresAt: Date;
}

export const erasureModel = collection<ErasureRow>('erasures', [[{ expiresAt: 1 }, { expireAfterSeconds: 0 }]]);

/** Requests accepted before a mark may store nothing under the entity's id after it. */
export type ErasureRepository = ReturnType<typeof createErasureRepository>;

/** A settlement may be repeated for as long as its worker lives (recover-lost.ts). */
const KEPT_MS = 30 * 24 * 3_600_000;

function erasureId({ tenantId, mode }: SearchedSpace, pseudonym: string | undefined): string {
  return `${tenantId} ${pseudonym ?? '*'}${mode === 'any' ? '' : ` ${mode}`}`;
}

/** Any of these marks may have erased an entity of the space. */
export function erasureIdsOf({ tenantId, mode }: Space, pseudonym: string | undefined): string[] {
  const modes = ['any', mode] as const;
  return modes.flatMap((one) => [
    erasureId({ tenantId, mode: one }, pseudonym),
    erasureId({ tenantId, mode: one }, undefined),
  ]);
}

export function createErasureRepository(connection: Connection) {
  const erasures = erasureModel(connection);

  async function latestOf(ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await erasures.find({ _id: { $in: [...ids] } }).lean();
    return new Map(rows.map(({ _id, seq }) => [_id, seq]));
  }

  return {
    /** The same for many at once, by what `erasureIdsOf` makes of them. */
    latestOf,

    /** `pseudonym` undefined: all of the tenant's entities. Safe to repeat; a later mark counts. */
    async mark(
      space: SearchedSpace,
      pseudonym: string | undefined,
      { seq, now }: { seq: number; now: number },
    ): Promise<void> {
      const { tenantId } = space;
      await erasures.updateOne(
        { _id: erasureId(space, pseudonym) },
        { $max: { seq, expiresAt: new Date(now + KEPT_MS) }, $setOnInsert: { tenantId } },
        { upsert: true },
      );
    },

    /** The latest place in the order of acceptance that a mark of the entity or the space has; 0: none. */
    async latest(space: Space, pseudonym: string | undefined): Promise<number> {
      const found = await latestOf(erasureIdsOf(space, pseudonym));
      return Math.max(0, ...found.values());
    },
  };
}
