import { setTimeout as pause } from 'node:timers/promises';

import type { Clock } from '../lifecycle/clock.ts';
import type { Logger } from '../logging/logger.ts';
import { createAccountRepository } from '../mongo/accounts/account-repository.ts';
import { createLedgerRepository, refundIdOf } from '../mongo/accounts/ledger-repository.ts';
import type { MongoConnection } from '../mongo/connection.ts';
import { createConversationRepository } from '../mongo/entities/conversation-repository.ts';
import { createTenantRepository } from '../mongo/tenants/tenant-repository.ts';
import type { AccountStore } from '../redis/stores/account-store.ts';

interface RefundDeps {
  mongo: MongoConnection;
  accountStore: AccountStore;
  clock: Clock;
  log: Logger;
  giveUpAfterMs: number;
}

interface Refunded {
  tenantId: string;
  shard: number;
}

const RETRY_MS = 500;
const REASON = 'Refund of a request that was answered with 503 and had ended.';

/**
 * Gives a charge back, once, with its budget's tokens and usage, and removes its turn from its entity: the caller got
 * 503 and sends the request again. Nobody has the answer, because the tenant keeps none or Redis had lost the request.
 * Retries, because the charge may not be booked yet, or MongoDB may be away. False: in vain.
 */
export function createRefund({ mongo, accountStore, clock, log, giveUpAfterMs }: RefundDeps) {
  const [ledger, accounts] = [createLedgerRepository(mongo), createAccountRepository(mongo)];
  const [tenants, conversations] = [createTenantRepository(mongo), createConversationRepository(mongo)];

  async function tryOnce(requestId: string, { tenantId, shard }: Refunded): Promise<boolean> {
    const refunded = await ledger.chargeOf(tenantId, requestId);
    if (refunded === null) return false;
    const { entityId, mode = 'live' } = refunded;
    const now = clock.now();
    if (entityId !== undefined)
      await conversations.deleteTurn({ tenantId, mode }, entityId, { requestId, claimedAt: now });
    const transactionId = refundIdOf(requestId);
    const entry = {
      transactionId,
      tenantId,
      type: 'adjustment',
      amountMicro: 0 - refunded.amountMicro,
      refunded,
      reason: REASON,
      now,
    } as const;
    const { book } = await accounts.book(entry);
    // Read after the booking: the balance must reach the shard on which a moving tenant ends up.
    const tenant = await tenants.find(tenantId);
    await accountStore.publishBalance(tenant?.shard ?? shard, tenantId, book);
    log.warn('A request that was refused had ended; its charge was given back.', { requestId, tenantId });
    return true;
  }

  return async (requestId: string, principal: Refunded): Promise<boolean> => {
    const until = clock.now() + giveUpAfterMs;
    let fault: unknown;
    while (clock.now() < until) {
      const isDone = await tryOnce(requestId, principal).catch((error: unknown) => {
        fault = error;
        return false;
      });
      if (isDone) return true;
      await pause(RETRY_MS);
    }
    const { tenantId } = principal;
    log.error('The charge of a refused request could not be given back.', { requestId, tenantId, error: fault });
    return false;
  };
}
