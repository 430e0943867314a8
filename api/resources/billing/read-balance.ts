import { monthOf } from '../../../shared/domain/pricing/pricing.ts';
import type { AccountRepository } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { TenantRow } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/accounts/account-store.ts';

/** A larger amount would not be exact as micro-credits in a number; what is left of 2^53 is for usage. */
export const BALANCE_MICRO_MAX = 8_000_000_000_000_000;

export interface Balance {
  /** The book's balance, less what finished requests owe it. */
  balanceMicro: number;
  /** Held for requests in progress. */
  heldMicro: number;
}

export interface BalanceDeps {
  accounts: AccountRepository;
  accountStore: AccountStore;
}

/** The three figures of one moment from Redis; the book itself from MongoDB while Redis has not loaded it. */
export async function readBalance(
  { accounts, accountStore }: BalanceDeps,
  tenant: Pick<TenantRow, '_id' | 'shard'>,
  now: number,
): Promise<Balance> {
  const figures = await accountStore.read(tenant.shard, tenant._id, monthOf(now));
  const bookMicro = figures.bookMicro ?? (await accounts.read(tenant._id))?.balanceMicro ?? 0;
  return { balanceMicro: bookMicro - figures.pendingMicro, heldMicro: figures.heldMicro };
}
