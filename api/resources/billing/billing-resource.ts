import { toCredits } from '../../../shared/domain/pricing.ts';
import type { CheckoutRow, CheckoutStatus } from '../../../shared/mongo/accounts/checkout-repository.ts';
import type { PackageRow } from '../../../shared/mongo/accounts/price-repository.ts';
import type { PurchaseRow } from '../../../shared/mongo/accounts/purchase-repository.ts';
import type { LedgerRow, LedgerType } from '../../../shared/mongo/accounts/ledger-repository.ts';
import {
  constant,
  id,
  integer,
  named,
  nullable,
  number,
  object,
  oneOf,
  pageSchema,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import type { FieldsOf } from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const amount = integer("In the currency's minor unit.", 0);
const currency = text('ISO 4217, lower case.');
const payment = oneOf(['stripe', 'test'], 'The payment provider.');

const packageFields = {
  id: text(),
  object: constant('billing.package'),
  created_at: time(),
  name: text(),
  credits: number(),
  amount,
  currency,
  expires_at: nullable(time('Time from which it is no longer sold')),
};
export const packageSchema = named('CreditPackage', object(packageFields));
export const packageListSchema = named(
  'CreditPackageList',
  pageSchema(packageSchema, {
    currency,
    price_per_million_credits: nullable(integer('Of free amounts, in minor units; null: only packages are sold.', 0)),
  }),
);

export function toPackageResource(row: PackageRow, currency: string) {
  return {
    id: row.id,
    object: 'billing.package',
    created_at: toSeconds(row.createdAt),
    name: row.name,
    credits: toCredits(row.creditsMicro),
    amount: row.amount,
    currency,
    expires_at: toSecondsOrNull(row.expiresAt),
  } satisfies FieldsOf<typeof packageFields>;
}

const checkoutFields = {
  id: id('cs'),
  object: constant('billing.checkout'),
  created_at: time(),
  status: oneOf(['open', 'processing', 'completed', 'cancelled', 'expired', 'failed']),
  url: nullable(text('Where the buyer pays; null once it is no longer open.')),
  payment,
  package_id: nullable(text()),
  credits: number(),
  amount,
  currency,
  success_url: text(),
  cancel_url: text(),
  expires_at: time('Until when it can be paid'),
  purchase_id: nullable(id('pur', 'Once it is paid.')),
};
export const checkoutSchema = named('Checkout', object(checkoutFields));

/** An open checkout expires on time, even without a notice from the payment. */
export function checkoutStatus({ status, expiresAt }: CheckoutRow, now: number): CheckoutStatus {
  return status === 'open' && expiresAt <= now ? 'expired' : status;
}

export function toCheckoutResource(row: CheckoutRow, now: number) {
  const status = checkoutStatus(row, now);
  return {
    id: row._id,
    object: 'billing.checkout',
    created_at: toSeconds(row.createdAt),
    status,
    // Only an open checkout can be paid.
    url: status === 'open' ? (row.url ?? null) : null,
    payment: row.payment,
    package_id: row.packageId ?? null,
    credits: toCredits(row.creditsMicro),
    amount: row.amount,
    currency: row.currency,
    success_url: row.successUrl,
    cancel_url: row.cancelUrl,
    expires_at: toSeconds(row.expiresAt),
    purchase_id: status === 'completed' ? row._id.replace(/^cs_/, 'pur_') : null,
  } satisfies FieldsOf<typeof checkoutFields>;
}

const purchaseFields = {
  id: id('pur'),
  object: constant('billing.purchase'),
  created_at: time('Time of the payment'),
  checkout_id: id('cs'),
  transaction_id: id('txn'),
  payment,
  package_id: nullable(text()),
  credits: number(),
  amount,
  currency,
  refunded_amount: integer('What was paid back, in minor units.', 0),
  refunded_credits: number('What was taken back for it.'),
};
export const purchaseListSchema = named('PurchaseList', pageSchema(named('Purchase', object(purchaseFields))));

export function toPurchaseResource(row: PurchaseRow) {
  return {
    id: row._id,
    object: 'billing.purchase',
    created_at: toSeconds(row.createdAt),
    checkout_id: row.checkoutId,
    transaction_id: row.transactionId,
    payment: row.payment,
    package_id: row.packageId ?? null,
    credits: toCredits(row.creditsMicro),
    amount: row.amount,
    currency: row.currency,
    refunded_amount: row.refundedAmount,
    refunded_credits: toCredits(row.refundedMicro),
  } satisfies FieldsOf<typeof purchaseFields>;
}

export const TRANSACTION_TYPES: readonly LedgerType[] = ['purchase', 'grant', 'usage', 'adjustment'];

export const transactionFields = {
  id: id('txn'),
  object: constant('billing.transaction'),
  created_at: time('Time of the booking'),
  type: oneOf(TRANSACTION_TYPES),
  credits: number('Negative where credits were taken.'),
  balance_after: number(),
  request_id: nullable(id('req', 'Of usage.')),
  purchase_id: nullable(id('pur', 'Of a purchase or a refund.')),
  reason: nullable(text()),
};
export const transactionListSchema = named(
  'TransactionList',
  pageSchema(named('Transaction', object(transactionFields))),
);

export function toTransactionResource(row: LedgerRow) {
  return {
    id: row._id,
    object: 'billing.transaction',
    created_at: toSeconds(row.createdAt),
    type: row.type,
    credits: toCredits(row.amountMicro),
    balance_after: toCredits(row.balanceAfterMicro),
    request_id: row.requestId ?? null,
    purchase_id: row.purchaseId ?? null,
    // Empty if an administrator gave no reason.
    reason: row.reason === undefined || row.reason === '' ? null : row.reason,
  } satisfies FieldsOf<typeof transactionFields>;
}

export const PACKAGE_EXAMPLE: ReturnType<typeof toPackageResource> = {
  id: 'starter',
  object: 'billing.package',
  created_at: 1_795_219_200,
  name: 'Starter',
  credits: 1_000_000,
  amount: 500,
  currency: 'usd',
  expires_at: null,
};
export const ORDER_EXAMPLE = {
  credits: 250_000,
  success_url: 'https://example.com/thanks',
  cancel_url: 'https://example.com/credits',
};
export const CHECKOUT_EXAMPLE: ReturnType<typeof toCheckoutResource> = {
  id: PATH_PARAMETERS.checkoutId.example,
  object: 'billing.checkout',
  created_at: 1_795_255_200,
  status: 'open',
  url: 'https://pay.example.com/cs_3sD5fG7hJ9kL1qW2eR4tY6uI',
  payment: 'stripe',
  package_id: null,
  amount: 125,
  currency: 'usd',
  ...ORDER_EXAMPLE,
  expires_at: 1_795_341_600,
  purchase_id: null,
};
export const PURCHASE_EXAMPLE: ReturnType<typeof toPurchaseResource> = {
  id: 'pur_3sD5fG7hJ9kL1qW2eR4tY6uI',
  object: 'billing.purchase',
  created_at: 1_795_255_260,
  checkout_id: CHECKOUT_EXAMPLE.id,
  transaction_id: 'txn_3sD5fG7hJ9kL1qW2eR4tY6uI',
  payment: 'stripe',
  package_id: null,
  credits: 250_000,
  amount: 125,
  currency: 'usd',
  refunded_amount: 0,
  refunded_credits: 0,
};
export const TRANSACTION_EXAMPLE: ReturnType<typeof toTransactionResource> = {
  id: 'txn_4fK2mZ8sQ1xY7bN3vC6tR9wE',
  object: 'billing.transaction',
  created_at: 1_795_255_201,
  type: 'usage',
  credits: -23,
  balance_after: 249_977,
  request_id: PATH_PARAMETERS.requestId.example,
  purchase_id: null,
  reason: null,
};
