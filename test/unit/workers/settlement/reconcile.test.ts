import { expect, it } from '@jest/globals';

import { createReconciler, noDrift } from '../../../../workers/settlement/reconcile.ts';
import type { ReconcileDeps } from '../../../../workers/settlement/reconcile.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

/** Reconciles so many tenants without an account, some of which cannot be looked at. */
async function reconcile(tenants: number, fails: (index: number) => boolean) {
  const ids = Array.from({ length: tenants }, (_, index) => `ten_${index}`);
  const looked: string[] = [];
  const deps: Pick<ReconcileDeps, 'books' | 'audit'> = {
    books: {
      async *tenantsOf() {
        yield await Promise.resolve(ids);
      },
      check(tenantId) {
        looked.push(tenantId);
        return fails(ids.indexOf(tenantId)) ? Promise.reject(new Error('too slow')) : Promise.resolve(undefined);
      },
    } as Partial<ReconcileDeps['books']> as ReconcileDeps['books'],
    audit: {
      recount: (_shard, tenantIds) =>
        Promise.resolve(
          tenantIds.map((tenantId) => ({
            tenantId,
            version: undefined,
            ledgerMicro: 0,
            heldDriftMicro: 0,
            pendingDriftMicro: 0,
          })),
        ),
    } as Partial<ReconcileDeps['audit']> as ReconcileDeps['audit'],
  };
  const reconciler = createReconciler({
    ...deps,
    accounts: {} as ReconcileDeps['accounts'],
    clock: { now: () => 0 },
    log: createRecordingLog(),
  });
  const done = await reconciler.reconcileShard(0, { onDrift: 'repair' }).catch((error: unknown) => error);
  return { done, looked };
}

it('goes on behind tenants that cannot be looked at, however many there are', async () => {
  const { done, looked } = await reconcile(40, (index) => index % 2 === 0);

  expect(done).toEqual({ tenants: 40, failed: 20, found: noDrift(), left: noDrift() });
  expect(looked).toHaveLength(40);
});

it('gives a shard up after ten failures in a row: they are not the tenants’ own', async () => {
  const { done, looked } = await reconcile(40, (index) => index >= 5);

  expect(done).toEqual(new Error('too slow'));
  expect(looked).toHaveLength(15);
});
