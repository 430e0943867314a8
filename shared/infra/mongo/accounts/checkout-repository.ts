import type { CheckoutRow } from './billing-rows.ts';
import type { Models } from '../models.ts';

/** Checkouts until they are paid; what is paid moves money, see purchase-repository.ts. */
export interface CheckoutRepository {
  insert(row: CheckoutRow): Promise<void>;
  /** Of the tenant. */
  find(tenantId: string, checkoutId: string): Promise<CheckoutRow | undefined>;
  /** Of any tenant: for whoever shows the unguessable id alone. */
  findAny(checkoutId: string): Promise<CheckoutRow | undefined>;
  /** The payment waits for the buyer, though it may have failed to open before. */
  opened(
    checkoutId: string,
    opened: Required<Pick<CheckoutRow, 'url' | 'expiresAt'>> & Pick<CheckoutRow, 'sessionId'>,
  ): Promise<void>;
  /** The payment could not be opened. */
  failed(checkoutId: string): Promise<void>;
  /** Whether the buyer's wish not to pay came before anything else. */
  cancel(checkoutId: string): Promise<boolean>;
}

export function createCheckoutRepository({ checkouts }: Pick<Models, 'checkouts'>): CheckoutRepository {
  return {
    async insert(row) {
      await checkouts.create(row);
    },

    async find(tenantId, checkoutId) {
      return (await checkouts.findOne({ tenantId, _id: checkoutId }).lean()) ?? undefined;
    },

    async findAny(checkoutId) {
      return (await checkouts.findById(checkoutId).lean()) ?? undefined;
    },

    async opened(checkoutId, opened) {
      await checkouts.updateOne({ _id: checkoutId }, { $set: opened });
      await checkouts.updateOne({ _id: checkoutId, status: 'failed' }, { $set: { status: 'open' } });
    },

    async failed(checkoutId) {
      await checkouts.updateOne({ _id: checkoutId, status: 'open' }, { $set: { status: 'failed' } });
    },

    async cancel(checkoutId) {
      const { modifiedCount } = await checkouts.updateOne(
        { _id: checkoutId, status: 'open' },
        { $set: { status: 'cancelled' } },
      );
      return modifiedCount === 1;
    },
  };
}
