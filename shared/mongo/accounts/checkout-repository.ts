import type { Connection } from 'mongoose';

import { collection } from '../collection.ts';

export type PaymentName = 'stripe' | 'test';

/** `processing`: paid by a means that takes days; `failed`: such a payment was refused, or the checkout never opened. */
export type CheckoutStatus = 'open' | 'processing' | 'completed' | 'cancelled' | 'expired' | 'failed';

/** The order, at a price that does not change any more. */
export interface Order {
  packageId?: string;
  creditsMicro: number;
  /** In the currency's minor unit. */
  amount: number;
  /** ISO 4217, lower case. */
  currency: string;
}

export interface CheckoutRow extends Order {
  /** `cs_…`; its 24 characters are also those of the purchase and of the ledger entry. */
  _id: string;
  tenantId: string;
  keyId: string;
  status: CheckoutStatus;
  payment: PaymentName;
  /** Where the buyer pays; absent until the payment has opened. */
  url?: string;
  /** The payment's own id of it. */
  sessionId?: string;
  successUrl: string;
  cancelUrl: string;
  createdAt: number;
  expiresAt: number;
  /** When MongoDB deletes it, unless it has been paid. */
  removeAt?: Date;
}

export const checkoutModel = collection<CheckoutRow>('checkouts', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ removeAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Checkouts until they are paid; what is paid moves money, see payment-bookings.ts. */
export type CheckoutRepository = ReturnType<typeof createCheckoutRepository>;

export function createCheckoutRepository(connection: Connection) {
  const checkouts = checkoutModel(connection);
  return {
    async insert(row: CheckoutRow): Promise<void> {
      await checkouts.create(row);
    },

    /** Of the tenant. */
    async find(tenantId: string, checkoutId: string): Promise<CheckoutRow | undefined> {
      return (await checkouts.findOne({ tenantId, _id: checkoutId }).lean()) ?? undefined;
    },

    /** Of any tenant: for whoever shows the unguessable id alone. */
    async findAny(checkoutId: string): Promise<CheckoutRow | undefined> {
      return (await checkouts.findById(checkoutId).lean()) ?? undefined;
    },

    /** The payment waits for the buyer, though it may have failed to open before. */
    async opened(
      checkoutId: string,
      opened: Required<Pick<CheckoutRow, 'url' | 'expiresAt'>> & Pick<CheckoutRow, 'sessionId'>,
    ): Promise<void> {
      await checkouts.updateOne({ _id: checkoutId }, { $set: opened });
      await checkouts.updateOne({ _id: checkoutId, status: 'failed' }, { $set: { status: 'open' } });
    },

    /** The payment could not be opened. */
    async failed(checkoutId: string): Promise<void> {
      await checkouts.updateOne({ _id: checkoutId, status: 'open' }, { $set: { status: 'failed' } });
    },

    /** Whether the buyer's wish not to pay came before anything else. */
    async cancel(checkoutId: string): Promise<boolean> {
      const { modifiedCount } = await checkouts.updateOne(
        { _id: checkoutId, status: 'open' },
        { $set: { status: 'cancelled' } },
      );
      return modifiedCount === 1;
    },
  };
}
