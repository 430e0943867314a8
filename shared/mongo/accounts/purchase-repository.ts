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
  /** The payment's own id; refunds name it. */
  paymentId?: string;
  /** Money that went back by refunds (minor units), and the credits taken back for it. */
  refundedAmount: number;
  refundedMicro: number;
  /** `refundedAmount` follows from these. Absent: no reversal yet, or one by an earlier version. */
  refundTotal?: number;
  refunds?: Refund[];
  /** The purchase's disputes, and credits taken back for them beyond the refunds. Absent: none yet. */
  disputes?: Dispute[];
  disputedMicro?: number;
  createdAt: number;
}

export const purchaseModel = collection<PurchaseRow>('purchases', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ paymentId: 1 }],
]);

/** A notice of the payment has either the checkout or the payment's own id. */
export interface PurchaseReference {
  checkoutId?: string;
  paymentId?: string;
}

/** Only reads: payment-bookings.ts writes purchases. */
export type PurchaseRepository = ReturnType<typeof createPurchaseRepository>;

/** Only the prefix differs from the checkout's id, so a checkout cannot be booked twice. */
export function idFromCheckout(prefix: 'pur' | 'txn', checkoutId: string): string {
  return checkoutId.replace(/^cs_/, `${prefix}_`);
}

/** `session`: the reading transaction; null: none. */
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
    list: (tenantId: string, query: ListQuery): Promise<PurchaseRow[]> => listRows(purchases, { tenantId }, query),

    /** With the present ledger balance of its tenant. Undefined: no such purchase is booked. */
    async find(reference: PurchaseReference): Promise<{ purchase: PurchaseRow; book: LedgerBalance } | undefined> {
      const purchase = await findPurchase(purchases, reference, null);
      const account = purchase === null ? null : await accounts.findById(purchase.tenantId).lean();
      return purchase === null || account === null ? undefined : { purchase, book: toLedgerBalance(account) };
    },
  };
}
