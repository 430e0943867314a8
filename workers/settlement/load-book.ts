import type { Logger } from '../../shared/infra/logging/logger.ts';
import type { AccountRepository } from '../../shared/infra/mongo/accounts/account-repository.ts';
import type { AccountStore } from '../../shared/infra/redis/accounts/account-store.ts';
import { inTime } from '../../shared/infra/redis/timing.ts';

export interface LoadBookDeps {
  accounts: Pick<AccountRepository, 'read'>;
  accountStore: Pick<AccountStore, 'publishBook'>;
  log: Logger;
}

/**
 * Brings a tenant's book to a Redis that has lost it, before a request that runs is granted more (request-store.ts). Never
 * rejects: while MongoDB is away the request goes on, and the tenant's next admission or settlement brings the book.
 */
export function createLoadBook({ accounts, accountStore, log }: LoadBookDeps) {
  /** All that a tenant runs is put back at once. */
  const underWay = new Map<string, Promise<void>>();

  async function load(shard: number, tenantId: string): Promise<void> {
    const book = await accounts.read(tenantId);
    if (book !== undefined) await accountStore.publishBook(shard, tenantId, book);
  }

  return (shard: number, tenantId: string): Promise<void> => {
    let loading = underWay.get(tenantId);
    if (loading === undefined) {
      // Not longer: the lease that waits for it is renewed every three seconds.
      loading = inTime(load(shard, tenantId))
        .catch((error: unknown) => {
          log.warn('The book of a tenant could not be brought to a Redis that had lost it.', { tenantId, error });
        })
        .finally(() => underWay.delete(tenantId));
      underWay.set(tenantId, loading);
    }
    return loading;
  };
}
