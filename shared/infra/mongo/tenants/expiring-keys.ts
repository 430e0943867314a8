import type { Models } from '../models.ts';
import type { KeyRow } from '../rows.ts';

export interface ExpiringKeys {
  /** A tenant's active keys that end after `from`, at `to` the latest. */
  between(tenantId: string, from: number, to: number): Promise<(KeyRow & { expiresAt: number })[]>;
}

export function createExpiringKeys({ keys }: Pick<Models, 'keys'>): ExpiringKeys {
  return {
    async between(tenantId, from, to) {
      const rows = await keys.find({ tenantId, status: 'active', expiresAt: { $gt: from, $lte: to } }).lean();
      return rows.flatMap(({ expiresAt, ...key }) => (expiresAt === undefined ? [] : [{ ...key, expiresAt }]));
    },
  };
}
