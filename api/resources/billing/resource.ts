import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import type { CheckoutRow } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';
import type { PackageRow } from '../../../shared/infra/mongo/accounts/price-repository.ts';
import type { PurchaseRow } from '../../../shared/infra/mongo/accounts/purchase-repository.ts';
import type { LedgerRow } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import { toSeconds, toSecondsOrNull } from '../../contract/unix-seconds.ts';
import { checkoutStatus } from './checkout-status.ts';

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
  };
}

export function toCheckoutResource(row: CheckoutRow, now: number) {
  const status = checkoutStatus(row, now);
  return {
    id: row._id,
    object: 'billing.checkout',
    created_at: toSeconds(row.createdAt),
    status,
    // Only what is open can be paid.
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
  };
}

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
  };
}

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
    // Empty where an administrator gave none.
    reason: row.reason === undefined || row.reason === '' ? null : row.reason,
  };
}
