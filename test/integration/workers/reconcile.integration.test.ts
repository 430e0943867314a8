import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { createLastDrift, createAccountAudit } from '../../../shared/redis/stores/account-store.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { createWorkerMetrics } from '../../../shared/metrics/worker-series.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { createEventBus } from '../../../shared/lifecycle/event-bus.ts';
import type { WorkerEvents } from '../../../workers/pipeline/worker-events.ts';
import { measureWorker } from '../../../workers/observers/worker-metrics.ts';
import { createReconcileHourly, createReconciler, noDrift } from '../../../workers/settlement/reconcile.ts';
import type { Reconciler } from '../../../workers/settlement/reconcile.ts';
import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { RATE, SHARD, endingOf, openRequestLab } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const GRANT = 1_000 * RATE;
const REPAIR = { onDrift: 'repair' } as const;
const GAUGES = { unreadableProviders: () => 0, capacities: () => [], checks: () => Promise.resolve({}) };

const lab = useStarted('lab', openRequestLab);
const book = useStarted('book', openLedgerLab);
let reconciler: Reconciler;
let principal: Principal;
let tenantId: string;
beforeAll(() => {
  reconciler = createReconciler({
    books: book.reconciliation,
    audit: createAccountAudit(lab.redis, lab.keyspace),
    accounts: lab.accounts,
    clock: { now: Date.now },
    log: createRecordingLog(),
  });
});
beforeEach(async () => {
  await book.models.tenants.deleteMany({});
  tenantId = await book.tenant(GRANT);
  await book.models.tenants.collection.insertOne({ _id: tenantId, shard: SHARD } as never);
  principal = await lab.tenant(GRANT, { tenantId });
  await publish();
});

async function publish(): Promise<void> {
  const account = await book.accounts.read(tenantId);
  if (account === undefined) throw new Error('The tenant has no account.');
  await lab.accounts.publishBalance(SHARD, tenantId, account);
}

/** A finished request: its record in the outbox, its charge pending. */
async function finished(): Promise<LabRequest> {
  const request = await lab.admit({ principal });
  await lab.run(request, 1);
  await lab.requests.finish(request.ref(1), 0, endingOf(request, 'Hi', { prompt: 10, completion: 5 }));
  return request;
}

describe('a book that agrees with itself', () => {
  it('shows no drift, whatever is running, pending or settled', async () => {
    await book.ledger.settle(
      [recordOf(tenantId, { costMicro: 7 }), recordOf(tenantId, { mode: 'test', costMicro: 0 })],
      1,
    );
    await publish();
    await lab.run(await lab.admit({ principal }), 1);
    await finished();

    expect(await reconciler.reconcileShard(SHARD, REPAIR)).toMatchObject({
      tenants: 1,
      failed: 0,
      found: noDrift(),
      left: noDrift(),
    });
    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: GRANT - 7, pendingMicro: 15 * RATE });
  });
});

describe('a book that moves while it is compared', () => {
  it('lets nothing be spent twice that is booked and not published yet', async () => {
    const { requestId } = await finished();
    const later = createReconciler({
      books: {
        ...book.reconciliation,
        // The leader of the settlement books meanwhile, and sleeps before it publishes.
        async check(...call) {
          const checked = await book.reconciliation.check(...call);
          await book.ledger.settle([recordOf(tenantId, { requestId, costMicro: 15 * RATE })], 1);
          return checked;
        },
      },
      audit: createAccountAudit(lab.redis, lab.keyspace),
      accounts: lab.accounts,
      clock: { now: Date.now },
      log: createRecordingLog(),
    });

    await later.reconcileShard(SHARD, REPAIR);

    const { ledgerMicro = 0, pendingMicro } = await lab.figures(principal);
    expect(ledgerMicro - pendingMicro).toBe(GRANT - 15 * RATE);
  });
});

describe('a book that does not', () => {
  it('gets the balance of its ledger again, in MongoDB and in Redis', async () => {
    await book.models.accounts.updateOne({ _id: tenantId }, { $inc: { balanceMicro: 500, version: 1 } });
    await publish();

    const { found, left } = await reconciler.reconcileShard(SHARD, REPAIR);

    expect(found).toEqual({ ...noDrift(), balance: 500 });
    expect(left).toEqual(noDrift());
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT, ledger: GRANT });
    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: GRANT });
  });

  it('gets its tokens by month and its roll-ups again', async () => {
    const record = recordOf(tenantId, { costMicro: 7 });
    await book.ledger.settle([record], 1);
    await book.models.accounts.updateOne({ _id: tenantId }, { $set: { 'tokensByMonth.202611': 99 } });
    await book.models.usageRollUps.updateOne({ tenantId, width: '1h', scope: 'all' }, { $inc: { promptTokens: 3 } });
    await book.models.usageRollUps.deleteOne({ tenantId, width: '1d', scope: 'entity' });

    const { found, left } = await reconciler.reconcileShard(SHARD, REPAIR);

    expect(found).toEqual({ ...noDrift(), budgetTokens: 69, usageTokens: 33 });
    expect(left).toEqual(noDrift());
    expect((await book.accounts.read(tenantId))?.tokensByMonth).toEqual({ '202611': 30 });
    const sum = { requests: 1, tokens: 30, costMicro: 7 };
    expect(await book.rolledUp(tenantId)).toEqual(Array.from({ length: 6 }, () => sum));
  });

  it('changes nothing where it is only checked', async () => {
    await book.models.accounts.updateOne({ _id: tenantId }, { $inc: { balanceMicro: 500 } });

    const { found, left } = await reconciler.reconcileShard(SHARD, { onDrift: 'report' });

    expect(found.balance).toBe(500);
    expect(left).toEqual(found);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT + 500, ledger: GRANT });
  });
});

describe('a Redis that does not', () => {
  it.each([
    ['of the same version', 1],
    ['of a version that MongoDB never had', 40],
  ])('takes the book again where its own is wrong and %s', async (_name, version) => {
    await lab.redis.hset(lab.keys.account(tenantId), { ledgerBalance: GRANT + 5, version });

    const { found, left } = await reconciler.reconcileShard(SHARD, REPAIR);

    expect(found).toEqual({ ...noDrift(), cachedBalance: 5 });
    expect(left).toEqual(noDrift());
    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: GRANT });
  });

  it('counts its holds and pending charges again', async () => {
    const running = await lab.admit({ principal });
    const held = (await lab.figures(principal)).heldMicro;
    await finished();
    await lab.redis.hincrby(lab.keys.account(tenantId), 'held', 11);
    await lab.redis.hincrby(lab.keys.account(tenantId), 'pending', -4);

    const { found, left } = await reconciler.reconcileShard(SHARD, REPAIR);

    expect(found).toEqual({ ...noDrift(), held: 11, pending: 4 });
    expect(left).toEqual(noDrift());
    expect(await lab.figures(principal)).toMatchObject({ heldMicro: held, pendingMicro: 15 * RATE });
    expect(running.requestId).toMatch(/^req_/);
  });

  it('keeps what is pending no longer than until the ledger has it', async () => {
    const request = await finished();
    await book.ledger.settle([{ ...request.settlement(15 * RATE, 5), tenantId }], 1);

    await reconciler.reconcileShard(SHARD, REPAIR);

    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: GRANT - 15 * RATE, pendingMicro: 0 });
  });

  it('drops a charge whose settlement is lost, only when nobody can bring it again', async () => {
    const request = await finished();
    await finished();
    await lab.redis.del(lab.keys.outbox);
    expect((await reconciler.reconcileShard(SHARD, REPAIR)).found).toEqual(noDrift());
    await lab.redis.del(lab.keys.record(request.requestId));

    const { found, left } = await reconciler.reconcileShard(SHARD, REPAIR);

    expect(found).toEqual({ ...noDrift(), lostRequests: 1 });
    expect(left).toEqual(noDrift());
    // The other one has its record still.
    expect(await lab.figures(principal)).toMatchObject({ ledgerMicro: GRANT, pendingMicro: 15 * RATE });
  });
});

describe('the hourly run', () => {
  it('is made by one worker of many and shows what is left in the gauge', async () => {
    await book.models.accounts.updateOne({ _id: tenantId }, { $inc: { balanceMicro: 500 } });
    const metrics = createWorkerMetrics(GAUGES);
    const events = createEventBus<WorkerEvents>(() => undefined);
    measureWorker(events, metrics, systemClock);
    const hourly = ['first', 'second'].map((name) =>
      createReconcileHourly({
        ...{ reconciler, events, outbox: lab.outbox, log: createRecordingLog() },
        drift: createLastDrift(lab.redis, lab.keyspace),
        leases: createLeaderLease(lab.redis, lab.keyspace, name),
      }),
    );
    for (const run of hourly) await run(SHARD);
    await book.models.accounts.updateOne({ _id: tenantId }, { $inc: { balanceMicro: 1 } });
    for (const run of hourly) await run(SHARD);

    const page = await metrics.page.render();
    expect(page).toMatch(/parley_ledger_drift{shard="3",part="balance",process="worker"} 0/);
    expect(page).toMatch(/parley_ledger_drift_repaired_total{part="balance",process="worker"} 500\n/);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT + 1, ledger: GRANT });
  });

  it('is shown by every worker as the last turn has left it, whoever had that turn', async () => {
    const workers = ['first', 'second'].map((name) => {
      const leases = createLeaderLease(lab.redis, lab.keyspace, name);
      const metrics = createWorkerMetrics(GAUGES);
      const events = createEventBus<WorkerEvents>(() => undefined);
      measureWorker(events, metrics, systemClock);
      const drift = createLastDrift(lab.redis, lab.keyspace);
      const leaves = (balance: number): Reconciler => ({
        reconcileShard: () =>
          Promise.resolve({ tenants: 1, failed: 0, found: noDrift(), left: { ...noDrift(), balance } }),
      });
      const run = (reconciler: Reconciler) =>
        createReconcileHourly({ reconciler, events, outbox: lab.outbox, log: createRecordingLog(), drift, leases })(
          SHARD,
        );
      const shown = async () =>
        /parley_ledger_drift{shard="3",part="balance".*} (\d+)/.exec(await metrics.page.render())?.[1];
      return { shown, run, leaves };
    });
    const [first, second] = workers;
    if (first === undefined || second === undefined) throw new Error('There are two.');
    const nextHour = () => lab.redis.del(lab.keyspace.shard(SHARD).lease('reconcile'));

    await nextHour();
    await first.run(first.leaves(7));
    await second.run(second.leaves(0));
    expect([await first.shown(), await second.shown()]).toEqual(['7', '7']);

    await nextHour();
    await second.run(second.leaves(0));
    await first.run(first.leaves(7));
    expect([await first.shown(), await second.shown()]).toEqual(['0', '0']);
  });
});
