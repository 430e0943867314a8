import { describe, expect, it } from '@jest/globals';

import { createTenantRepository } from '../../../shared/mongo/tenants/tenant-repository.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createSettler } from '../../../workers/settlement/settle.ts';
import type { SettleDeps, Settler } from '../../../workers/settlement/settle.ts';
import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import { useEach, useStarted } from '../../support/use-service.ts';

const GRANT = 1_000 * RATE;
const COST = 30 * RATE;

const lab = useEach('lab', openRequestLab);
let time = 0;
let processes = 0;
const book = useStarted('book', openLedgerLab);

/** A process that settles; it dies where one of `faults` throws. */
function newSettler(faults: Partial<SettleDeps> = {}): Settler {
  processes += 1;
  return createSettler({
    outbox: lab.outbox,
    ledger: book.ledger,
    accounts: lab.accounts,
    tenants: createTenantRepository(book.connection),
    leases: createLeaderLease(lab.redis, lab.keyspace, `process-${processes}`),
    clock: { now: () => time },
    events: { emit: () => undefined },
    publishBooked: () => Promise.resolve(),
    log: createRecordingLog(),
    ...faults,
  });
}

/** A finished request of a new tenant, as far as the account and the outbox know. */
async function owing(count = 1): Promise<{ tenantId: string; requestIds: string[] }> {
  const tenantId = await book.tenant(GRANT);
  const opened = await book.accounts.read(tenantId);
  if (opened === undefined) throw new Error('The account is missing');
  await lab.accounts.publishBalance(SHARD, tenantId, opened);
  const records = Array.from({ length: count }, () => recordOf(tenantId, { costMicro: COST }));
  for (const { requestId } of records) {
    await lab.redis.hset(lab.keys.pending(tenantId), requestId, `${COST}:30:202611`);
    await lab.redis.hincrby(lab.keys.account(tenantId), 'pending', COST);
  }
  for (const record of records) await lab.redis.xadd(lab.keys.outbox, '*', 's', JSON.stringify(record));
  return { tenantId, requestIds: records.map(({ requestId }) => requestId) };
}

const inRedis = (tenantId: string) => lab.accounts.read(SHARD, tenantId, '202611');
const crash = () => Promise.reject(new Error('The process was killed'));

async function expectSettled(tenantId: string, count = 1): Promise<void> {
  const left = GRANT - count * COST;
  expect(await book.usageOf(tenantId)).toHaveLength(count);
  expect(await book.balanceOf(tenantId)).toEqual({ account: left, ledger: left });
  expect(await inRedis(tenantId)).toMatchObject({ ledgerMicro: left, pendingMicro: 0 });
  expect(await lab.outbox.length(SHARD)).toBe(0);
}

it('is spent where its tenant is by now, however late its worker came back to the former shard', async () => {
  const { tenantId } = await owing();
  const NEXT = SHARD + 1;
  const opened = await book.accounts.read(tenantId);
  if (opened === undefined) throw new Error('The account is missing');
  await lab.accounts.publishBalance(NEXT, tenantId, opened);
  // Settlement reads nothing else of a tenant.
  await book.models.tenants.collection.insertOne({ _id: tenantId as never, shard: NEXT });

  await newSettler().settleShard(SHARD);

  await expectSettled(tenantId);
  expect(await lab.accounts.read(NEXT, tenantId, '202611')).toMatchObject({ ledgerMicro: GRANT - COST });
});

it('never lets more be spent than there is, whatever the moment', async () => {
  const { tenantId } = await owing();
  const spendable: number[] = [];
  const look = async () => {
    const { ledgerMicro = 0, pendingMicro } = await inRedis(tenantId);
    spendable.push(ledgerMicro - pendingMicro);
  };
  const settler = newSettler({
    ledger: {
      async settle(records, now) {
        await look();
        const books = await book.ledger.settle(records, now);
        await look();
        return books;
      },
    },
  });

  await settler.settleShard(SHARD);
  await look();

  expect(spendable).toEqual([GRANT - COST, GRANT - COST, GRANT - COST]);
});

describe('a process that dies while it settles', () => {
  it.each([
    ['before it books', () => ({ ledger: { settle: crash } })],
    [
      'after the commit, before Redis hears of it',
      () => ({ accounts: { read: lab.accounts.read, publishBalance: crash } }),
    ],
    ['before it tells of them', () => ({ publishBooked: crash })],
    ['before it acknowledges', () => ({ outbox: { ...lab.outbox, acknowledge: crash } })],
  ])('%s leaves nothing uncharged and charges nothing twice', async (_when, faults) => {
    const { tenantId } = await owing(2);
    const dying = newSettler(faults());
    await expect(dying.settleShard(SHARD)).rejects.toThrow('The process was killed');
    await dying.release(SHARD);

    await newSettler().settleShard(SHARD);

    await expectSettled(tenantId, 2);
  });

  it('before it acknowledges leaves the next one to tell of the same requests', async () => {
    const { requestIds } = await owing(2);
    const told: string[][] = [];
    const publishBooked = (records: readonly { requestId: string }[]) => {
      told.push(records.map(({ requestId }) => requestId));
      return Promise.resolve();
    };
    const dying = newSettler({ publishBooked, outbox: { ...lab.outbox, acknowledge: crash } });
    await expect(dying.settleShard(SHARD)).rejects.toThrow('The process was killed');
    await dying.release(SHARD);

    await newSettler({ publishBooked }).settleShard(SHARD);

    expect(told).toEqual([requestIds, requestIds]);
  });

  it('a process that dies while it settles leaves the shard to another one', async () => {
    const { tenantId } = await owing();
    const [leader, other] = [newSettler(), newSettler()];
    await leader.settleShard(SHARD);
    const { requestIds } = await owing();

    expect(await other.settleShard(SHARD)).toBe(0);
    await leader.release(SHARD);
    expect(await other.settleShard(SHARD)).toBe(1);

    expect(await book.usageOf(tenantId)).toHaveLength(1);
    expect(await book.models.ledger.countDocuments({ requestId: { $in: requestIds } })).toBe(1);
  });
});

it('finds the records of an answer that was lost on the way from Redis', async () => {
  const settler = newSettler();
  await settler.settleShard(SHARD);
  const { tenantId } = await owing();
  // Read by this consumer, and never seen by the process.
  await lab.outbox.read(SHARD, 'new', 10);

  time += 5_000;
  await settler.settleShard(SHARD);

  await expectSettled(tenantId);
});

it('goes on where Redis came back empty', async () => {
  const settler = newSettler();
  await settler.settleShard(SHARD);
  await lab.redis.del(lab.keys.outbox);
  const { tenantId } = await owing();

  await settler.settleShard(SHARD);

  await expectSettled(tenantId);
});

it('books more records than fit into a batch', async () => {
  const { tenantId } = await owing(450);
  const settler = newSettler();

  let read = 0;
  for (let round = await settler.settleShard(SHARD); round > 0; round = await settler.settleShard(SHARD)) read += round;

  expect(read).toBe(450);
  expect(await book.usageOf(tenantId)).toHaveLength(450);
});
