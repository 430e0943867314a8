import type { Payment } from '../payment.ts';

/** Below `/platform/v1`; followed by the checkout's id. */
export const TEST_PAYMENT_PATH = '/billing/test_payment';

/** Takes no money: a page of this service stands for the payment (`PAYMENTS=test`). */
export function createTestPayment(): Payment {
  return {
    name: 'test',
    open: ({ _id, expiresAt }, origin) =>
      Promise.resolve({ url: `${origin}/platform/v1${TEST_PAYMENT_PATH}/${_id}`, expiresAt }),
  };
}
