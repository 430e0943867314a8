import type { Connection } from 'mongoose';

import type { Tier } from '../../contracts/chat-request.ts';
import type { FinishReason, TokenKinds } from '../../contracts/events.ts';
import type { ChatRoute } from '../../contracts/jobs.ts';
import type { Spend } from '../../contracts/settlement.ts';
import type { KeyMode, SearchedSpace } from '../../contracts/space.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import { collection, listRows, inSpace } from '../collection.ts';

export interface LedgerRow extends TokenKinds {
  /** `txn_…`; for usage `txn_` + the request's own 24 characters, so one request cannot have two. */
  _id: string;
  tenantId: string;
  type: 'purchase' | 'grant' | 'usage' | 'adjustment';
  /** Signed micro-credits: usage is negative or zero. */
  amountMicro: number;
  /** Includes this entry and all before it. */
  balanceAfterMicro: number;
  /** Rises with every booking of a tenant (see `moveAccount`). */
  createdAt: number;
  reason?: string;
  purchaseId?: string;
  requestId?: string;
  keyId?: string;
  mode?: KeyMode;
  endpoint?: ChatRoute;
  tier?: Tier;
  entityId?: string;
  provider?: string;
  model?: string;
  /** Negative, as every count, where a charge is given back: budget and usage lose them again. */
  promptTokens?: number;
  completionTokens?: number;
  estimated?: boolean;
  finishReason?: FinishReason;
  acceptedAt?: number;
  /** An adjustment of its own gave the charge back. */
  refunded?: boolean;
  /** The operator's cost of its provider calls. Absent: some called target has no cost. Never shown to a tenant. */
  spend?: Spend;
}

export const ledgerModel = collection<LedgerRow>('ledger', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ tenantId: 1, acceptedAt: 1 }],
  [{ tenantId: 1, entityId: 1 }, { partialFilterExpression: { entityId: { $exists: true } } }],
]);

/** The request's own characters make the id, so the unique index on `_id` refuses a second entry. */
export function ledgerIdOf(requestId: string): string {
  return requestId.replace(/^req_/, 'txn_');
}

/** The id of the entry that gives a charge back: the request's characters reversed, so there is only one. */
export function refundIdOf(requestId: string): string {
  const [, own = ''] = requestId.split('_');
  return `txn_${Array.from(own).reverse().join('')}`;
}

export type LedgerType = LedgerRow['type'];

export type LedgerRepository = ReturnType<typeof createLedgerRepository>;

export function createLedgerRepository(connection: Connection) {
  const ledger = ledgerModel(connection);
  return {
    /** Milliseconds since the epoch; undefined: not booked yet. */
    async settledAt(space: SearchedSpace, requestId: string): Promise<number | undefined> {
      const row = await ledger.findOne({ _id: ledgerIdOf(requestId), ...inSpace(space) }, { createdAt: 1 }).lean();
      return row?.createdAt;
    },

    chargeOf: (tenantId: string, requestId: string): Promise<LedgerRow | null> =>
      ledger.findOne({ _id: ledgerIdOf(requestId), tenantId }).lean(),

    /** In the order of booking, of one type or of all; one row more than the limit. */
    list: (space: SearchedSpace, type: LedgerType | undefined, query: ListQuery): Promise<LedgerRow[]> =>
      listRows(ledger, { ...inSpace(space), ...(type === undefined ? {} : { type }) }, query),
  };
}
