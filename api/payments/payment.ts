import type { CheckoutRow, PaymentName } from '../../shared/mongo/accounts/checkout-repository.ts';

/** A checkout that is ready to be paid. */
interface OpenedCheckout {
  /** The page on which the buyer pays. */
  url: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  /** The payment provider's own id of the checkout. */
  sessionId?: string;
}

/** Whoever takes the money: Stripe, or this service's test page, which takes none. */
export interface Payment {
  name: PaymentName;
  /**
   * Opens a checkout; `origin` is how the caller reaches this service. Safe to repeat: that opens no second checkout.
   * Throws a ServiceError.
   */
  open(checkout: CheckoutRow, origin: string): Promise<OpenedCheckout>;
}
