import type { CheckoutRow, PaymentName } from '../../shared/infra/mongo/accounts/checkout-repository.ts';

/** A checkout that the buyer can pay now. */
interface OpenedCheckout {
  /** The page on which the buyer pays. */
  url: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  /** The payment's own id of it. */
  sessionId?: string;
}

/** Who takes the money: Stripe, or a page of this service that takes none. */
export interface Payment {
  name: PaymentName;
  /**
   * Opens a checkout; `origin` is how the caller reaches this service. Repeating it opens no second one.
   * Throws a ServiceError.
   */
  open(checkout: CheckoutRow, origin: string): Promise<OpenedCheckout>;
}
