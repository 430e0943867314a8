import type { ClientSession, Connection, Model } from 'mongoose';

import type { ListQuery } from '../../contracts/list-page.ts';
import type { Dispute, Refund } from '../../domain/payments.ts';
import { collection, listRows } from '../collection.ts';
import { accountModel, toLedgerBalance } from './account-repository.ts';
import type { LedgerBalance } from './account-repository.ts';
import type { Order, PaymentName } from './checkout-repository.ts';

export interface PurchaseRow extends Order {
  _id: string;
  tenantId: string;
  checkoutId: string;
  transactionId: string;
  payment: PaymentName;
  /** The payment's own id of what was paid; refunds name it. */
  paymentId?: string;
  /** Money that went back to the buyer by refunds (minor units), and the credits that were taken back for it. */
  refundedAmount: number;
  refundedMicro: number;
  /** `refundedAmount` follows from these. Absent: no reversal yet, or one by an earlier version. */
  refundTotal?: number;
  refunds?: Refund[];
  /** The purchase's disputes, and the credits that are taken back for them beyond the refunds. Absent: no dispute yet. */
  disputes?: Dispute[];
  disputedMicro?: number;
  createdAt: number;
}

export const purchaseModel = collection<PurchaseRow>('purchases', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ paymentId: 1 }],
]);

/** Names a purchase by its checkout, or by the payment's own id, whichever a notice of the payment has. */
export interface PurchaseReference {
  checkoutId?: string;
  paymentId?: string;
}

/** Purchases to read; payment-bookings.ts writes them. */
export type PurchaseRepository = ReturnType<typeof createPurchaseRepository>;

/**
 * The id of a checkout's purchase, or of its ledger entry. It differs from the checkout's in its prefix only, so a checkout
 * cannot be booked twice.
 */
export function idFromCheckout(prefix: 'pur' | 'txn', checkoutId: string): string {
  return checkoutId.replace(/^cs_/, `${prefix}_`);
}

/** `session`: the transaction that reads it; null: none. */
export function findPurchase(
  purchases: Model<PurchaseRow>,
  { checkoutId, paymentId }: PurchaseReference,
  session: ClientSession | null,
): Promise<PurchaseRow | null> {
  if (checkoutId !== undefined) return purchases.findById(idFromCheckout('pur', checkoutId)).session(session).lean();
  return paymentId === undefined ? Promise.resolve(null) : purchases.findOne({ paymentId }).session(session).lean();
}

export function createPurchaseRepository(connection: Connection) {
  const accounts = accountModel(connection);
  const purchases = purchaseModel(connection);
  return {
    /** One row more than the limit. */
    list: (tenantId: string, query: ListQuery): Promise<PurchaseRow[]> => listRows(purchases, { tenantId }, query),

    /** A purchase, and the ledger balance of its tenant's account as it stands. Undefined: no such purchase is booked. */
    async find(reference: PurchaseReference): Promise<{ purchase: PurchaseRow; book: LedgerBalance } | undefined> {
      const purchase = await findPurchase(purchases, reference, null);
      const account = purchase === null ? null : await accounts.findById(purchase.tenantId).lean();
      return purchase === null || account === null ? undefined : { purchase, book: toLedgerBalance(account) };
    },
  };
}
