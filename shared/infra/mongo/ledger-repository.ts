import type { Models } from './models.ts';
import { ledgerIdOf } from './settlement-repository.ts';

export interface LedgerRepository {
  /** When a request was booked, milliseconds since the epoch; undefined: it was not, or not yet. */
  settledAt(tenantId: string, requestId: string): Promise<number | undefined>;
}

export function createLedgerRepository({ ledger }: Pick<Models, 'ledger'>): LedgerRepository {
  return {
    async settledAt(tenantId, requestId) {
      const row = await ledger.findOne({ _id: ledgerIdOf(requestId), tenantId }, { createdAt: 1 }).lean();
      return row?.createdAt;
    },
  };
}
