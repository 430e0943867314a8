/**
 * One interface and two implementations: Stripe Checkout and the test page. A checkout
 * (api/resources/billing/create-checkout.ts) stores the order and sends the customer there. Credits are granted by the
 * notice that follows, never by the customer's return: stripe/events.ts reads it, book-payment.ts books it in one
 * transaction (shared/mongo/accounts/payment-bookings.ts), and the ledger balance goes to Redis. If that fails, the
 * notice is answered 503, and its repetition publishes the balance. A notice may come any number of times
 * (docs/decisions/0019-payments.md).
 */
import type { CheckoutRow, PaymentName } from '../../shared/mongo/accounts/checkout-repository.ts';

interface OpenedCheckout {
  /** The page on which the buyer pays. */
  url: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  /** The payment provider's own id of the checkout. */
  sessionId?: string;
}

export interface Payment {
  name: PaymentName;
  /** `origin`: how the caller reaches this service. A repeat opens no second checkout. Throws a ServiceError. */
  open(checkout: CheckoutRow, origin: string): Promise<OpenedCheckout>;
}
