import type { Dispute } from '../../../domain/billing/reversal.ts';

/** Rows of buying credits, as in rows.ts: ids are the public ones, times are milliseconds since the epoch. */
export type PaymentName = 'stripe' | 'test';

/** `processing`: paid by a means that takes days; `failed`: such a payment was refused, or the checkout never opened. */
export type CheckoutStatus = 'open' | 'processing' | 'completed' | 'cancelled' | 'expired' | 'failed';

/** What is bought, at a price that does not change any more. */
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
}

export interface PurchaseRow extends Order {
  _id: string;
  tenantId: string;
  checkoutId: string;
  transactionId: string;
  payment: PaymentName;
  /** The payment's own id of what was paid; refunds name it. */
  paymentId?: string;
  /** What was paid back, and the credits that were taken back for it. */
  refundedAmount: number;
  refundedMicro: number;
  /** What was disputed, and the credits that are taken back for it beyond the refunds; absent: never. */
  disputes?: Dispute[];
  disputedMicro?: number;
  createdAt: number;
}

/** An event of the payment that has had its effect. */
export interface PaymentEventRow {
  /** The event's id. */
  _id: string;
  type: string;
  createdAt: number;
  /** MongoDB deletes it then. */
  expiresAt: Date;
}

export interface PackageRow {
  id: string;
  name: string;
  creditsMicro: number;
  amount: number;
  createdAt: number;
  /** It is not sold from then on. */
  expiresAt?: number;
}

/** There is one; `_id` is `current`. */
export interface PriceListRow {
  _id: string;
  currency: string;
  /** Minor units for a million credits; null: only packages are sold. */
  pricePerMillion: number | null;
  packages: PackageRow[];
  updatedAt: number;
}
