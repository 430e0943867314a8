import type { Connection } from 'mongoose';

import { collection } from '../collection.ts';

export type PaymentName = 'stripe' | 'test';

/** `processing`: paid by a means that takes days; `failed`: such a payment was refused, or could not open. */
export type CheckoutStatus = 'open' | 'processing' | 'completed' | 'cancelled' | 'expired' | 'failed';

/** The price does not change any more. */
export interface Order {
  packageId?: string;
  creditsMicro: number;
  /** In the currency's minor unit. */
  amount: number;
  /** ISO 4217, lower case. */
  currency: string;
}

export interface CheckoutRow extends Order {
  /** `cs_…`; the purchase and the ledger entry share its 24 characters. */
  _id: string;
  tenantId: string;
  keyId: string;
  status: CheckoutStatus;
  payment: PaymentName;
  /** The buyer pays there; absent until the payment has opened. */
  url?: string;
  sessionId?: string;
  successUrl: string;
  cancelUrl: string;
  createdAt: number;
  expiresAt: number;
  /** MongoDB deletes it then, unless it has been paid. */
  removeAt?: Date;
}

export const checkoutModel = collection<CheckoutRow>('checkouts', [
  [{ tenantId: 1, createdAt: -1 }],
  [{ removeAt: 1 }, { expireAfterSeconds: 0 }],
]);

/** Holds checkouts until they are paid; payment-bookings.ts moves the money. */
export type CheckoutRepository = ReturnType<typeof createCheckoutRepository>;

export function createCheckoutRepository(connection: Connection) {
  const checkouts = checkoutModel(connection);
  return {
    async insert(row: CheckoutRow): Promise<void> {
      await checkouts.create(row);
    },

    async find(tenantId: string, checkoutId: string): Promise<CheckoutRow | undefined> {
      return (await checkouts.findOne({ tenantId, _id: checkoutId }).lean()) ?? undefined;
    },

    /** Of any tenant: the unguessable id alone gives access. */
    async findAny(checkoutId: string): Promise<CheckoutRow | undefined> {
      return (await checkouts.findById(checkoutId).lean()) ?? undefined;
    },

    /** The payment waits for the buyer; it may have failed to open before. */
    async opened(
      checkoutId: string,
      opened: Required<Pick<CheckoutRow, 'url' | 'expiresAt'>> & Pick<CheckoutRow, 'sessionId'>,
    ): Promise<void> {
      await checkouts.updateOne({ _id: checkoutId }, { $set: opened });
      await checkouts.updateOne({ _id: checkoutId, status: 'failed' }, { $set: { status: 'open' } });
    },

    async failed(checkoutId: string): Promise<void> {
      await checkouts.updateOne({ _id: checkoutId, status: 'open' }, { $set: { status: 'failed' } });
    },

    /** True: the buyer's wish not to pay came first. */
    async cancel(checkoutId: string): Promise<boolean> {
      const { modifiedCount } = await checkouts.updateOne(
        { _id: checkoutId, status: 'open' },
        { $set: { status: 'cancelled' } },
      );
      return modifiedCount === 1;
    },
  };
}
