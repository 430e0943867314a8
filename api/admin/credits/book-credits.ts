import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Logger } from '../../../shared/infra/logging/logger.ts';
import type { AccountRepository, Book } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { LedgerRow } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/accounts/account-store.ts';
import { BALANCE_MICRO_MAX, readBalance } from '../../resources/billing/billing-status.ts';

export interface BookCreditsDeps {
  accounts: AccountRepository;
  accountStore: AccountStore;
  log: Logger;
}

export interface Booking {
  type: 'grant' | 'adjustment';
  /** Signed micro-credits. */
  amountMicro: number;
  reason: string;
  /** The same for calls that are to book once together. */
  transactionId?: string;
}

/**
 * Books an amount and brings the new book to Redis. Safe to repeat only with a `transactionId`, so whatever can fail is
 * tried before anything is booked, and what fails after that does not make the caller try again.
 */
export async function bookCredits(
  deps: BookCreditsDeps,
  { _id: tenantId, shard }: Pick<TenantRow, '_id' | 'shard'>,
  booking: Booking,
  now: number,
): Promise<{ entry: LedgerRow; isRepeated: boolean }> {
  async function publish(book: Book): Promise<void> {
    try {
      await deps.accountStore.publishBook(shard, tenantId, book);
    } catch (error) {
      deps.log.error('Credits are booked but Redis does not know them yet; npm run reconcile repairs it.', {
        tenantId,
        shard,
        error,
      });
    }
  }

  const { transactionId } = booking;
  const before = transactionId === undefined ? undefined : await deps.accounts.booked(tenantId, transactionId);
  if (before !== undefined) {
    await publish(before.book);
    return { entry: before.entry, isRepeated: true };
  }
  const { balanceMicro } = await readBalance(deps, { _id: tenantId, shard }, now);
  if (Math.abs(balanceMicro + booking.amountMicro) > BALANCE_MICRO_MAX) {
    throw new ServiceError(
      'invalid_request',
      `\`credits\` must leave a balance between ${-toCredits(BALANCE_MICRO_MAX)} and ${toCredits(BALANCE_MICRO_MAX)}.`,
      { param: 'credits' },
    );
  }
  const booked = await deps.accounts.book({ tenantId, ...booking, now });
  await publish(booked.book);
  return { entry: booked.entry, isRepeated: false };
}
