import { toCredits } from '../../../shared/domain/pricing.ts';
import type { CheckoutRow, CheckoutStatus } from '../../../shared/mongo/accounts/checkout-repository.ts';
import type { PackageRow } from '../../../shared/mongo/accounts/price-repository.ts';
import type { PurchaseRow } from '../../../shared/mongo/accounts/purchase-repository.ts';
import type { LedgerRow, LedgerType } from '../../../shared/mongo/accounts/ledger-repository.ts';
import {
  field,
  id,
  integer,
  kind,
  named,
  nullable,
  number,
  oneOf,
  pageSchema,
  resource,
  text,
  time,
  toSeconds,
  toSecondsOrNull,
} from '../../contract/json-schema.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';

const amount = integer("In the currency's minor unit.", 0);
const currency = text('ISO 4217, lower case.');
const payment = oneOf(['stripe', 'test'], 'The payment provider.');

export const packageResource = resource<[row: PackageRow, currency: string]>('CreditPackage', {
  id: field(text(), 'starter', (row) => row.id),
  object: kind('billing.package'),
  created_at: field(time(), 1_795_219_200, (row) => toSeconds(row.createdAt)),
  name: field(text(), 'Starter', (row) => row.name),
  credits: field(number(), 1_000_000, (row) => toCredits(row.creditsMicro)),
  amount: field(amount, 500, (row) => row.amount),
  currency: field(currency, 'usd', (_row, code) => code),
  expires_at: field(nullable(time('Time from which it is no longer sold')), null, (row) =>
    toSecondsOrNull(row.expiresAt),
  ),
});
export const packageListSchema = named(
  'CreditPackageList',
  pageSchema(packageResource.schema, {
    currency,
    price_per_million_credits: nullable(integer('Of free amounts, in minor units; null: only packages are sold.', 0)),
  }),
);

/** An open checkout expires on time, even without a notice from the payment. */
export function checkoutStatus({ status, expiresAt }: CheckoutRow, now: number): CheckoutStatus {
  return status === 'open' && expiresAt <= now ? 'expired' : status;
}

export const ORDER_EXAMPLE = {
  credits: 250_000,
  success_url: 'https://example.com/thanks',
  cancel_url: 'https://example.com/credits',
};
export const checkoutResource = resource<[row: CheckoutRow, now: number]>('Checkout', {
  id: field(id('cs'), PATH_PARAMETERS.checkoutId.example, (row) => row._id),
  object: kind('billing.checkout'),
  created_at: field(time(), 1_795_255_200, (row) => toSeconds(row.createdAt)),
  status: field(oneOf(['open', 'processing', 'completed', 'cancelled', 'expired', 'failed']), 'open', checkoutStatus),
  url: field(
    nullable(text('Where the buyer pays; null once it is no longer open.')),
    'https://pay.example.com/cs_3sD5fG7hJ9kL1qW2eR4tY6uI',
    (row, now) => (checkoutStatus(row, now) === 'open' ? row.url : null),
  ),
  payment: field(payment, 'stripe', (row) => row.payment),
  package_id: field(nullable(text()), null, (row) => row.packageId),
  credits: field(number(), ORDER_EXAMPLE.credits, (row) => toCredits(row.creditsMicro)),
  amount: field(amount, 125, (row) => row.amount),
  currency: field(currency, 'usd', (row) => row.currency),
  success_url: field(text(), ORDER_EXAMPLE.success_url, (row) => row.successUrl),
  cancel_url: field(text(), ORDER_EXAMPLE.cancel_url, (row) => row.cancelUrl),
  expires_at: field(time('Until when it can be paid'), 1_795_341_600, (row) => toSeconds(row.expiresAt)),
  purchase_id: field(nullable(id('pur', 'Once it is paid.')), null, (row, now) =>
    checkoutStatus(row, now) === 'completed' ? row._id.replace(/^cs_/, 'pur_') : null,
  ),
});

export const purchaseResource = resource<[row: PurchaseRow]>('Purchase', {
  id: field(id('pur'), 'pur_3sD5fG7hJ9kL1qW2eR4tY6uI', (row) => row._id),
  object: kind('billing.purchase'),
  created_at: field(time('Time of the payment'), 1_795_255_260, (row) => toSeconds(row.createdAt)),
  checkout_id: field(id('cs'), PATH_PARAMETERS.checkoutId.example, (row) => row.checkoutId),
  transaction_id: field(id('txn'), 'txn_3sD5fG7hJ9kL1qW2eR4tY6uI', (row) => row.transactionId),
  payment: field(payment, 'stripe', (row) => row.payment),
  package_id: field(nullable(text()), null, (row) => row.packageId),
  credits: field(number(), 250_000, (row) => toCredits(row.creditsMicro)),
  amount: field(amount, 125, (row) => row.amount),
  currency: field(currency, 'usd', (row) => row.currency),
  refunded_amount: field(integer('What was paid back, in minor units.', 0), 0, (row) => row.refundedAmount),
  refunded_credits: field(number('What was taken back for it.'), 0, (row) => toCredits(row.refundedMicro)),
});

export const TRANSACTION_TYPES: readonly LedgerType[] = ['purchase', 'grant', 'usage', 'adjustment'];

export const transactionResource = resource<[row: LedgerRow]>('Transaction', {
  id: field(id('txn'), 'txn_4fK2mZ8sQ1xY7bN3vC6tR9wE', (row) => row._id),
  object: kind('billing.transaction'),
  created_at: field(time('Time of the booking'), 1_795_255_201, (row) => toSeconds(row.createdAt)),
  type: field(oneOf(TRANSACTION_TYPES), 'usage', (row) => row.type),
  credits: field(number('Negative where credits were taken.'), -23, (row) => toCredits(row.amountMicro)),
  balance_after: field(number(), 249_977, (row) => toCredits(row.balanceAfterMicro)),
  request_id: field(nullable(id('req', 'Of usage.')), PATH_PARAMETERS.requestId.example, (row) => row.requestId),
  purchase_id: field(nullable(id('pur', 'Of a purchase or a refund.')), null, (row) => row.purchaseId),
  // Empty if an administrator gave no reason.
  reason: field(nullable(text()), null, (row) => (row.reason === '' ? null : row.reason)),
});
