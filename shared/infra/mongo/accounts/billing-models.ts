import { Schema } from 'mongoose';

import { collection, count, number, options, required, text } from '../collection.ts';
import type { CheckoutRow, PackageRow, PaymentEventRow, PriceListRow, PurchaseRow } from './billing-rows.ts';

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

export const checkoutModel = collection<CheckoutRow>('Checkout', 'checkouts', checkoutSchema);
export const purchaseModel = collection<PurchaseRow>('Purchase', 'purchases', purchaseSchema);
export const paymentEventModel = collection<PaymentEventRow>('PaymentEvent', 'payment_events', paymentEventSchema);
export const priceListModel = collection<PriceListRow>('PriceList', 'price_lists', priceListSchema);
