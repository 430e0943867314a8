import type { CheckoutRow, CheckoutStatus } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';

/** An open checkout is over when its time is, whether or not the payment has said so. */
export function checkoutStatus({ status, expiresAt }: CheckoutRow, now: number): CheckoutStatus {
  return status === 'open' && expiresAt <= now ? 'expired' : status;
}
