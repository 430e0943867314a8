import { beforeEach, describe, expect, it } from '@jest/globals';

import { createRebuildUsage } from '../../../shared/mongo/accounts/rebuild-usage.ts';
import type { ReconciliationRepository } from '../../../shared/mongo/accounts/reconciliation-repository.ts';
import { createAccountAudit, createLastDrift } from '../../../shared/redis/stores/account-store.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { createReconcileHourly, createReconciler, noDrift } from '../../../workers/settlement/reconcile.ts';
import type { Reconciler } from '../../../workers/settlement/reconcile.ts';
import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import type { RecordingLog } from '../../support/recording-log.ts';
import { openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const GRANT = 1_000 * RATE;
const REPAIR = { onDrift: 'repair' } as const;
const DAY_MS = 86_400_000;
const ACCEPTED_AT = Date.UTC(2026, 10, 20, 12);

const lab = useStarted('lab', openRequestLab);
const book = useStarted('book', openLedgerLab);
let log: RecordingLog;
let tenantId: string;
beforeEach(async () => {
  log = createRecordingLog();
  await book.models.tenants.deleteMany({});
  tenantId = await tenant();
});

/** A tenant of the shard whose account Redis has loaded. */
async function tenant(): Promise<string> {
  const id = await book.tenant(GRANT);
  await book.models.tenants.collection.insertOne({ _id: id, shard: SHARD } as never);
  const account = await book.accounts.read(id);
  if (account !== undefined) await lab.accounts.publishBalance(SHARD, id, account);
  return id;
}

function newReconciler(books: ReconciliationRepository = book.reconciliation): Reconciler {
  return createReconciler({
    ...{ books, accounts: lab.accounts, log },
    audit: createAccountAudit(lab.redis, lab.keyspace),
    clock: { now: () => ACCEPTED_AT + DAY_MS },
  });
}

const settle = (more: { acceptedAt?: number } = {}) =>
  book.ledger.settle([recordOf(tenantId, { acceptedAt: ACCEPTED_AT, costMicro: 7, ...more })], ACCEPTED_AT);

/** The ledger's entries as a repository may not see them any more: what it needs of them has been added up. */
async function hideLedger(): Promise<void> {
  await book.models.ledger.updateMany({ tenantId }, { $set: { tenantId: `hidden ${tenantId}` } });
}

describe('a ledger that was added up before', () => {
  it('is not read again', async () => {
    await settle();
    await newReconciler().reconcileShard(SHARD, REPAIR);
    await hideLedger();
    await settle();

    expect(await newReconciler().reconcileShard(SHARD, REPAIR)).toMatchObject({ found: noDrift(), failed: 0 });
    const groups = (await book.models.ledgerCheckpoints.findById(tenantId).lean())?.groups ?? [];
    expect(groups.toSorted((one, other) => (one.type < other.type ? -1 : 1))).toMatchObject([
      { type: 'grant', amountMicro: GRANT },
      { type: 'usage', mode: 'live', requests: 2, amountMicro: -14, promptTokens: 20, completionTokens: 40 },
    ]);
    expect(groups.flatMap((group) => Object.values(group))).not.toContain(null);
  });

  it('is read as a whole when that is asked for, and nothing is written where it is only checked', async () => {
    await settle();
    await newReconciler().reconcileShard(SHARD, REPAIR);
    const before = await book.models.ledgerCheckpoints.findById(tenantId).lean();
    await hideLedger();

    const { found } = await newReconciler().reconcileShard(SHARD, { onDrift: 'report', full: true });

    expect(found.balance).toBe(GRANT - 7);
    expect(await book.models.ledgerCheckpoints.findById(tenantId).lean()).toEqual(before);
  });

  it('is added up anew where its sums say something else, before anything is repaired', async () => {
    await settle();
    await newReconciler().reconcileShard(SHARD, REPAIR);
    await book.models.ledgerCheckpoints.updateOne({ _id: tenantId }, { $inc: { 'groups.0.amountMicro': 5 } });

    expect(await newReconciler().reconcileShard(SHARD, REPAIR)).toMatchObject({ found: noDrift(), left: noDrift() });
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 7, ledger: GRANT - 7 });
    expect(await newReconciler().reconcileShard(SHARD, REPAIR)).toMatchObject({ found: noDrift() });
  });

  it('shows a day again whose roll-ups are wrong since requests came to it', async () => {
    await settle();
    await settle({ acceptedAt: ACCEPTED_AT - 3 * DAY_MS });
    await newReconciler().reconcileShard(SHARD, REPAIR);
    await settle();
    await book.models.usageRollUps.updateOne({ tenantId, width: '1h', scope: 'all' }, { $inc: { promptTokens: 3 } });
    await book.models.usageRollUps.updateMany(
      { tenantId, startMs: ACCEPTED_AT, width: '1h' },
      { $inc: { promptTokens: 3 } },
    );

    const { found, left } = await newReconciler().reconcileShard(SHARD, REPAIR);

    expect(found.usageTokens).toBeGreaterThan(0);
    expect(left).toEqual(noDrift());
    const sum = { requests: 3, tokens: 90, costMicro: 21 };
    expect(await book.rolledUp(tenantId)).toEqual(Array.from({ length: 6 }, () => sum));
  });
});

it('makes a day with many requests anew an hour at a time', async () => {
  const rebuild = createRebuildUsage(book.connection, { requestsAtOnce: 1 });
  for (const hour of [0, 0, 5, 23]) await settle({ acceptedAt: Date.UTC(2026, 10, 20, hour, 59, 59) });
  const before = await book.models.usageRollUps.find({ tenantId }).sort({ _id: 1 }).lean();
  await book.models.usageRollUps.updateMany({ tenantId, width: { $ne: '1m' } }, { $inc: { requests: 3 } });
  await book.models.usageRollUps.deleteMany({ tenantId, width: '1m' });

  await rebuild(tenantId, Date.UTC(2026, 10, 20), 4);

  expect(await book.models.usageRollUps.find({ tenantId }).sort({ _id: 1 }).lean()).toEqual(before);
});

it('frees 20,000 pending charges that the ledger has, and keeps what is not in it', async () => {
  const rows = Array.from({ length: 20_000 }, () => recordOf(tenantId, { costMicro: 1 }));
  const [first] = rows;
  const booked = (ids: readonly string[]) => Promise.resolve(new Set(ids.filter((id) => id !== first?.requestId)));
  const pending = rows.flatMap(({ requestId }) => [requestId, '1:2:202611']);
  for (let from = 0; from < pending.length; from += 4_000)
    await lab.redis.hset(lab.keys.pending(tenantId), ...pending.slice(from, from + 4_000));
  await lab.redis.hset(lab.keys.account(tenantId), { pending: 20_000, 'pendingTokens:202611': 40_000 });
  await lab.redis.xadd(lab.keys.deadLetters, '*', 's', JSON.stringify(first));

  const reconciler = newReconciler({ ...book.reconciliation, booked });
  expect(await reconciler.reconcileShard(SHARD, REPAIR)).toMatchObject({ found: noDrift(), failed: 0 });

  expect(await lab.redis.hkeys(lab.keys.pending(tenantId))).toEqual([first?.requestId]);
  expect(await lab.redis.hmget(lab.keys.account(tenantId), 'pending', 'pendingTokens:202611')).toEqual(['1', '2']);
});

describe('a tenant that cannot be reconciled', () => {
  const failing = (bad: readonly string[]): ReconciliationRepository => ({
    ...book.reconciliation,
    check: (id, options) =>
      bad.includes(id) ? Promise.reject(new Error('no answer')) : book.reconciliation.check(id, options),
  });

  it('keeps no other from it, and is counted', async () => {
    const others = await Promise.all([1, 2, 3].map(tenant));
    for (const id of others) await book.models.accounts.updateOne({ _id: id }, { $inc: { balanceMicro: 5 } });

    const done = await newReconciler(failing([tenantId])).reconcileShard(SHARD, REPAIR);

    expect(done).toMatchObject({ tenants: 4, failed: 1, found: { balance: 15 }, left: noDrift() });
  });

  it('lets a failed turn wait its hour, with dead letters tried again first', async () => {
    const bad = [tenantId, ...(await Promise.all(Array.from({ length: 11 }, tenant)))];
    const text = JSON.stringify(recordOf(tenantId));
    await lab.redis.del(lab.keys.deadLetters, lab.keys.outbox);
    await lab.redis.xadd(lab.keys.deadLetters, '*', 's', text);
    let asked = 0;
    const books = failing(bad);
    const hourly = createReconcileHourly({
      reconciler: newReconciler({ ...books, check: (...args) => ((asked += 1), books.check(...args)) }),
      leases: createLeaderLease(lab.redis, lab.keyspace, newId('wrk')),
      outbox: lab.outbox,
      drift: createLastDrift(lab.redis, lab.keyspace),
      events: { emit: () => undefined },
      log,
    });

    await expect(hourly(SHARD)).rejects.toThrow('no answer');
    await hourly(SHARD);

    expect(asked).toBe(10);
    expect(await lab.outbox.backlog(SHARD)).toMatchObject({ outbox: 1, deadLetters: 0 });
  });
});
