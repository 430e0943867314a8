import type { ListQuery } from '../../../contracts/list-page.ts';
import { listRows } from '../list-rows.ts';
import type { Models } from '../models.ts';
import type { LedgerRow } from '../rows.ts';
import { ledgerIdOf } from './settlement-repository.ts';

export type LedgerType = LedgerRow['type'];

export interface LedgerRepository {
  /** When a request was booked, milliseconds since the epoch; undefined: it was not, or not yet. */
  settledAt(tenantId: string, requestId: string): Promise<number | undefined>;
  /** In the order of booking, of one type or of all; one row more than the limit. */
  list(tenantId: string, type: LedgerType | undefined, query: ListQuery): Promise<LedgerRow[]>;
}

export function createLedgerRepository({ ledger }: Pick<Models, 'ledger'>): LedgerRepository {
  return {
    async settledAt(tenantId, requestId) {
      const row = await ledger.findOne({ _id: ledgerIdOf(requestId), tenantId }, { createdAt: 1 }).lean();
      return row?.createdAt;
    },

    list: (tenantId, type, query) => listRows(ledger, { tenantId, ...(type === undefined ? {} : { type }) }, query),
  };
}
