import { monthOf, toCredits } from '../../../shared/domain/pricing/pricing.ts';
import { nextMonthStart } from '../usage/buckets.ts';
import type { Principal } from '../../../shared/domain/keys/principal.ts';
import type { AccountRepository } from '../../../shared/infra/mongo/accounts/account-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/accounts/account-store.ts';

export interface AccountStatusDeps {
  accounts: Pick<AccountRepository, 'read'>;
  accountStore: Pick<AccountStore, 'read'>;
}

/** `GET /billing`: what Redis admits by; the book itself from MongoDB while Redis has not loaded it. */
export async function readAccountStatus(
  { accounts, accountStore }: AccountStatusDeps,
  { tenantId, shard, monthlyTokenBudget: limit }: Principal,
  now: number,
) {
  const month = monthOf(now);
  const figures = await accountStore.read(shard, tenantId, month);
  const book = figures.bookMicro === undefined ? await accounts.read(tenantId) : undefined;
  const balanceMicro = (figures.bookMicro ?? book?.balanceMicro ?? 0) - figures.pendingMicro;
  const used = figures.budgetUsedTokens + (book?.tokensByMonth[month] ?? 0);
  return {
    object: 'billing.status',
    balance: toCredits(balanceMicro),
    held: toCredits(figures.heldMicro),
    available: toCredits(balanceMicro - figures.heldMicro),
    currency: 'credits',
    budget: {
      limit,
      used,
      remaining: limit === null ? null : Math.max(0, limit - used),
      resets_at: nextMonthStart(now) / 1000,
    },
  };
}
