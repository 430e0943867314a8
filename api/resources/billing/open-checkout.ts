import { toCredits } from '../../../shared/domain/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CheckoutRepository, CheckoutRow, Order } from '../../../shared/mongo/accounts/checkout-repository.ts';
import type { Payment } from '../../payments/payment.ts';
import { BALANCE_MICRO_MAX } from './billing-status.ts';

/** The lifetime of a Stripe session. */
const OPEN_MS = 24 * 3_600_000;
/** Payment methods may take two weeks, and their notices are sent again for three days. */
const UNPAID_KEPT_MS = 30 * OPEN_MS;

export interface Buyer {
  tenantId: string;
  keyId: string;
  balanceMicro: number;
  /** How the caller reaches this service. */
  origin: string;
}

export interface NewCheckout {
  checkoutId: string;
  order: Order;
  /** Where the buyer goes after paying, or after leaving without paying. */
  urls: { successUrl: string; cancelUrl: string };
  buyer: Buyer;
}

/** Refuses a purchase, before payment, if the balance would no longer be an exact number. */
export function assertRoomFor({ creditsMicro, packageId }: Order, { balanceMicro }: Buyer): void {
  if (balanceMicro + creditsMicro <= BALANCE_MICRO_MAX) return;
  throw new ServiceError('invalid_request', `The balance must not exceed ${toCredits(BALANCE_MICRO_MAX)} credits.`, {
    param: packageId === undefined ? 'credits' : 'package_id',
  });
}

/**
 * Stores a checkout before opening it with the payment, so that a payment notice always finds its checkout. A checkout
 * that could not be opened has status `failed`.
 */
export async function openCheckout(
  { checkouts, payment }: { checkouts: CheckoutRepository; payment: Payment },
  { checkoutId, order, urls, buyer }: NewCheckout,
  now: number,
): Promise<CheckoutRow> {
  const { tenantId, keyId, origin } = buyer;
  const row: CheckoutRow = {
    _id: checkoutId,
    tenantId,
    keyId,
    ...urls,
    ...order,
    status: 'open',
    payment: payment.name,
    createdAt: now,
    expiresAt: now + OPEN_MS,
    removeAt: new Date(now + OPEN_MS + UNPAID_KEPT_MS),
  };
  await checkouts.insert(row);
  return letPay({ checkouts, payment }, row, origin);
}

/** Opens a stored checkout with the payment, once; a repeated call opens one whose first answer was lost. */
export async function letPay(
  { checkouts, payment }: { checkouts: CheckoutRepository; payment: Payment },
  row: CheckoutRow,
  origin: string,
): Promise<CheckoutRow> {
  if (row.url !== undefined) return row;
  try {
    const opened = await payment.open(row, origin);
    await checkouts.opened(row._id, opened);
    return { ...row, ...opened, status: row.status === 'failed' ? 'open' : row.status };
  } catch (error) {
    await checkouts.failed(row._id).catch(() => undefined);
    throw error;
  }
}
