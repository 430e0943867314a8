import { setTimeout as pause } from 'node:timers/promises';

import type { Principal } from '../../shared/domain/principal.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { AccountRepository } from '../../shared/mongo/accounts/account-repository.ts';
import { refundIdOf } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { LedgerRepository } from '../../shared/mongo/accounts/ledger-repository.ts';
import type { TenantRepository } from '../../shared/mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../../shared/redis/stores/account-store.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';

export interface RefundDeps {
  ledger: LedgerRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  tenants: TenantRepository;
  clock: Clock;
  log: Logger;
  giveUpAfterMs: number;
}

const RETRY_MS = 500;
const REASON = 'Refund of a request that was answered with 503 and had ended.';

/**
 * Refunds the credits and budget tokens of a request, once. Its caller got 503, and nobody has the answer, because the
 * tenant keeps none or Redis had lost the request by then. Tries for a while, because the charge may not be booked yet,
 * or MongoDB may be unavailable.
 */
export function createRefund({ ledger, accounts, accountStore, tenants, clock, log, giveUpAfterMs }: RefundDeps) {
  async function tryOnce(requestId: string, { tenantId, shard }: Principal): Promise<boolean> {
    const refunded = await ledger.chargeOf(tenantId, requestId);
    if (refunded === undefined) return false;
    if (refunded.mode === 'test') return true;
    const transactionId = refundIdOf(requestId);
    const entry = {
      transactionId,
      tenantId,
      type: 'adjustment',
      amountMicro: refunded.costMicro,
      refunded,
      reason: REASON,
      now: clock.now(),
    } as const;
    const { book } = await accounts.book(entry);
    // Read after the booking: if the tenant is being moved, the ledger balance must reach the shard on which the tenant ends up.
    const tenant = await tenants.find(tenantId);
    await accountStore.publishBalance(tenant?.shard ?? shard, tenantId, book);
    log.warn('A request that was refused had ended; its charge was given back.', { requestId, tenantId });
    return true;
  }

  return async (requestId: string, principal: Principal): Promise<void> => {
    const until = clock.now() + giveUpAfterMs;
    let fault: unknown;
    while (clock.now() < until) {
      const isDone = await tryOnce(requestId, principal).catch((error: unknown) => {
        fault = error;
        return false;
      });
      if (isDone) return;
      await pause(RETRY_MS);
    }
    const { tenantId } = principal;
    log.error('The charge of a refused request could not be given back.', { requestId, tenantId, error: fault });
  };
}
