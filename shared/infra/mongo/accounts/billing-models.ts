import { Schema } from 'mongoose';
import type { Connection, Model } from 'mongoose';

import type { CheckoutRow, PackageRow, PaymentEventRow, PriceListRow, PurchaseRow } from './billing-rows.ts';
import type { Dispute } from '../../../domain/billing/reversal.ts';
import { count, number, options, required, text } from '../schema-parts.ts';

const order = { packageId: text, creditsMicro: count, amount: count, currency: required };
const checkoutSchema = new Schema<CheckoutRow>(
  {
    _id: required,
    tenantId: required,
    keyId: required,
    status: required,
    payment: required,
    ...order,
    url: text,
    sessionId: text,
    successUrl: required,
    cancelUrl: required,
    createdAt: count,
    expiresAt: count,
  },
  options,
).index({ tenantId: 1, createdAt: -1 });

const dispute = new Schema<Dispute>(
  { id: required, amount: count, withdrawals: count, reinstatements: count },
  { _id: false, id: false },
);
const purchaseSchema = new Schema<PurchaseRow>(
  {
    _id: required,
    tenantId: required,
    checkoutId: required,
    transactionId: required,
    payment: required,
    paymentId: text,
    ...order,
    refundedAmount: count,
    refundedMicro: count,
    disputes: { type: [dispute], default: undefined },
    disputedMicro: number,
    createdAt: count,
  },
  options,
)
  .index({ tenantId: 1, createdAt: -1 })
  .index({ paymentId: 1 });

const paymentEventSchema = new Schema<PaymentEventRow>(
  { _id: required, type: required, createdAt: count, expiresAt: { type: Date, required: true } },
  options,
).index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const creditPackage = new Schema<PackageRow>(
  { id: required, name: required, creditsMicro: count, amount: count, createdAt: count, expiresAt: number },
  { _id: false, id: false },
);
const priceListSchema = new Schema<PriceListRow>(
  {
    _id: required,
    currency: required,
    pricePerMillion: { type: Number, default: null },
    packages: [creditPackage],
    updatedAt: count,
  },
  options,
);

export interface BillingModels {
  checkouts: Model<CheckoutRow>;
  purchases: Model<PurchaseRow>;
  paymentEvents: Model<PaymentEventRow>;
  priceLists: Model<PriceListRow>;
}

export function createBillingModels(connection: Connection): BillingModels {
  return {
    checkouts: connection.model<CheckoutRow>('Checkout', checkoutSchema, 'checkouts'),
    purchases: connection.model<PurchaseRow>('Purchase', purchaseSchema, 'purchases'),
    paymentEvents: connection.model<PaymentEventRow>('PaymentEvent', paymentEventSchema, 'payment_events'),
    priceLists: connection.model<PriceListRow>('PriceList', priceListSchema, 'price_lists'),
  };
}
