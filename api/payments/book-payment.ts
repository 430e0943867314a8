import { toCredits } from '../../shared/domain/pricing/pricing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';
import type {
  Moved,
  PaidCheckout,
  PaymentNotice,
  PurchaseRepository,
  Refund,
} from '../../shared/infra/mongo/accounts/purchase-repository.ts';
import type { TenantRepository } from '../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { TenantEvents } from '../tenant-events.ts';

export interface BookPaymentDeps {
  purchases: PurchaseRepository;
  tenants: Pick<TenantRepository, 'find'>;
  accountStore: AccountStore;
  events: TenantEvents;
  clock: Clock;
  log: Logger;
}

/** Books what a payment says, exactly once, and brings the new book to Redis. `requestId` is for the audit log. */
export interface BookPayment {
  /**
   * Whether this call was the one that credited. One that comes again brings the book to Redis again, so a payment
   * whose book did not get there is answered 503, and counts once the payment repeats its word.
   */
  complete(paid: PaidCheckout, requestId: string, notice?: PaymentNotice): Promise<boolean>;
  /** `unpaid`: the payment is to say it again later. */
  refund(refund: Refund, requestId: string, notice: PaymentNotice): Promise<'unpaid' | 'heard'>;
}

/** What the audit log calls whoever paid. */
const ACTOR = 'payment';

export function createBookPayment(deps: BookPaymentDeps): BookPayment {
  const { purchases, tenants, accountStore, events, clock, log } = deps;

  async function publish({ purchase: { tenantId }, book }: Pick<Moved, 'purchase' | 'book'>): Promise<void> {
    const tenant = await tenants.find(tenantId);
    if (tenant === undefined) throw new Error(`There is no tenant ${tenantId}`);
    await accountStore.publishBook(tenant.shard, tenantId, book);
  }

  function emit(
    type: 'credits.purchased' | 'credits.refunded',
    { purchase, amountMicro }: Moved,
    requestId: string,
  ): Promise<void> {
    const { tenantId, _id: purchaseId, amount, currency } = purchase;
    const details = { credits: toCredits(amountMicro), amount, currency };
    return events.emit({ tenantId, id: ACTOR, requestId }, type, purchaseId, details);
  }

  return {
    async complete(paid, requestId, notice) {
      const moved = await purchases.complete(paid, clock.now(), notice);
      if (moved !== undefined) await emit('credits.purchased', moved, requestId);
      const booked = moved ?? (await purchases.completed(paid.checkoutId));
      if (booked === undefined) return false;
      try {
        await publish(booked);
      } catch (cause) {
        throw new ServiceError('model_unavailable', 'The payment is booked but does not count yet; send it again.', {
          cause,
          retryAfterSeconds: 1,
        });
      }
      return moved !== undefined;
    },

    async refund(refund, requestId, notice) {
      const moved = await purchases.refund(refund, clock.now(), notice);
      if (moved === 'unpaid') return 'unpaid';
      if (moved === undefined) return 'heard';
      await emit('credits.refunded', moved, requestId);
      await publish(moved).catch((error: unknown) => {
        const { tenantId } = moved.purchase;
        log.error('A refund is booked but Redis does not know it yet; npm run reconcile repairs it.', {
          tenantId,
          requestId,
          error,
        });
      });
      return 'heard';
    },
  };
}
