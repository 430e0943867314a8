import type { AccountState } from '../../../domain/webhooks/account-events.ts';
import type { Models } from '../models.ts';

export interface AccountStates {
  /** What thresholds are about; undefined: there is no such tenant. */
  read(tenantId: string): Promise<{ account: AccountState; monthlyTokenBudget: number | null } | undefined>;
}

export function createAccountStates({ accounts, tenants }: Pick<Models, 'accounts' | 'tenants'>): AccountStates {
  return {
    async read(tenantId) {
      const [account, tenant] = await Promise.all([
        accounts.findById(tenantId).lean(),
        tenants.findById(tenantId, { monthlyTokenBudget: 1 }).lean(),
      ]);
      return account === null || tenant === null
        ? undefined
        : { account, monthlyTokenBudget: tenant.monthlyTokenBudget };
    },
  };
}
