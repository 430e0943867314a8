import type { PaymentMismatch, Reversal } from '../../shared/domain/payments.ts';
import { toCredits } from '../../shared/domain/pricing.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { LedgerBalance } from '../../shared/mongo/accounts/account-repository.ts';
import type { PaidCheckout, PaymentBookings, ReversalOutcome } from '../../shared/mongo/accounts/payment-bookings.ts';
import type {
  PurchaseRow,
  PurchaseReference,
  PurchaseRepository,
} from '../../shared/mongo/accounts/purchase-repository.ts';
import type { PaymentNotice } from '../../shared/mongo/accounts/payment-notices.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import type { WatchAccount, EventSink } from '../../shared/webhooks/publish.ts';

export interface BookPaymentDeps {
  purchases: PurchaseRepository;
  paymentBookings: PaymentBookings;
  tenants: TenantRepository;
  accountStore: AccountStore;
  events: EventSink;
  watchAccount: WatchAccount;
  countMismatch: (reason: PaymentMismatch) => void;
  clock: Clock;
  log: Logger;
}

/**
 * Books a payment notice exactly once, then writes the new book to Redis and publishes the tenant's webhook events. A
 * repeated notice repeats only the last two steps, so it completes a call that failed after the booking. `requestId` is
 * for the audit log.
 */
export type BookPayment = ReturnType<typeof createBookPayment>;

async function publishBalance(deps: BookPaymentDeps, { tenantId }: PurchaseRow, book: LedgerBalance): Promise<void> {
  const { tenants, accountStore } = deps;
  try {
    const tenant = await tenants.find(tenantId);
    if (tenant === undefined) throw new Error(`There is no tenant ${tenantId}`);
    await accountStore.publishBalance(tenant.shard, tenantId, book);
  } catch (cause) {
    throw new ServiceError('model_unavailable', 'This is booked but does not count yet; send it again.', {
      cause,
      retryAfterSeconds: 1,
    });
  }
}

export function createBookPayment(deps: BookPaymentDeps) {
  const { purchases, paymentBookings, events, watchAccount, countMismatch, clock, log } = deps;

  async function publishPurchased({ _id, tenantId, creditsMicro, createdAt }: PurchaseRow): Promise<void> {
    const data = { purchase_id: _id, credits: toCredits(creditsMicro) };
    await events.publish([{ tenantId, mode: 'live', type: 'credits.purchased', cause: _id, data, now: createdAt }]);
  }

  return {
    async complete(paid: PaidCheckout, requestId: string, notice?: PaymentNotice): Promise<void> {
      const { checkoutId } = paid;
      const mismatch = await paymentBookings.complete(paid, {
        now: clock.now(),
        requestId,
        ...(notice === undefined ? {} : { notice }),
      });
      if (mismatch !== undefined) {
        countMismatch(mismatch);
        log.error(`A paid notice does not fit the checkout ${checkoutId} (${mismatch}); nothing is booked.`, {
          requestId,
        });
        return;
      }
      const booked = await purchases.find({ checkoutId });
      if (booked === undefined) return;
      await publishBalance(deps, booked.purchase, booked.book);
      await publishPurchased(booked.purchase);
    },

    /** `unpaid`: the provider must send the notice again later. `unknown`: the purchase was not made here. */
    async reverse(
      reference: PurchaseReference,
      reversal: Reversal,
      requestId: string,
      notice: PaymentNotice,
    ): Promise<ReversalOutcome> {
      const now = clock.now();
      const outcome = await paymentBookings.reverse(reference, reversal, { now, requestId, notice });
      if (outcome !== 'booked') return outcome;
      const booked = await purchases.find(reference);
      if (booked === undefined) return outcome;
      await publishBalance(deps, booked.purchase, booked.book);
      await events.publish(await watchAccount(booked.purchase.tenantId, now));
      return outcome;
    },
  };
}
