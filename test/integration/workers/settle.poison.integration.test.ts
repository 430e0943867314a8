import { beforeEach, describe, expect, it } from '@jest/globals';

import { newId } from '../../../shared/lifecycle/ids.ts';
import { createTenantRepository } from '../../../shared/mongo/tenants/tenant-repository.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createSettler } from '../../../workers/settlement/settle.ts';
import type { BlockReason, SettleDeps, Settler } from '../../../workers/settlement/settle.ts';
import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import type { RecordingLog } from '../../support/recording-log.ts';
import { openRequestLab, RATE, SHARD } from '../../support/request-lab.ts';
import { mongoUri } from '../../support/stores.ts';
import { useEach, useStarted } from '../../support/use-service.ts';

const GRANT = 1_000 * RATE;
const RETRY_MS = 5_000;

const lab = useEach('lab', openRequestLab);
const book = useStarted('book', openLedgerLab);
const proxy = useStarted('proxy', () => openTcpProxy(mongoUri('')));
const refusing = useStarted('proxy', () => openTcpProxy(mongoUri('')));
let log: RecordingLog;
let time = 0;
let blocked: BlockReason[];
beforeEach(() => {
  log = createRecordingLog();
  blocked = [];
});

function newSettler(ledger: SettleDeps['ledger'] = book.ledger): Settler {
  return createSettler({
    outbox: lab.outbox,
    ledger,
    accounts: lab.accounts,
    tenants: createTenantRepository(book.connection),
    leases: createLeaderLease(lab.redis, lab.keyspace, 'process'),
    clock: { now: () => time },
    events: {
      emit(event, value) {
        if (event === 'settlement.blocked') blocked.push(value as BlockReason);
      },
    },
    publishBooked: () => Promise.resolve(),
    log,
  });
}

async function put(...texts: string[]): Promise<void> {
  for (const text of texts) await lab.redis.xadd(lab.keys.outbox, '*', 's', text);
}

const deadLetters = async () =>
  (await lab.redis.xrange(lab.keys.deadLetters, '-', '+')).map(([, fields]) => fields[1] ?? '');

/** As many looks back as a record gets before it is given up. */
async function settleForLong(settler: Settler): Promise<void> {
  for (let round = 0; round < 6; round += 1) {
    await settler.settleShard(SHARD);
    time += RETRY_MS;
  }
}

it('puts aside what is no record, tells the operator, and books the rest', async () => {
  const tenantId = await book.tenant(GRANT);
  const good = JSON.stringify(recordOf(tenantId));
  const { costMicro, ...withoutCost } = recordOf(tenantId);
  const odd = [{}, { costMicro: null }, { costMicro, requestId: { $gt: '' } }];
  const poison = ['not JSON', '', 'null', '[]', ...odd.map((more) => JSON.stringify({ ...withoutCost, ...more }))];
  await put(good, ...poison, JSON.stringify(recordOf(tenantId)));

  await newSettler().settleShard(SHARD);

  expect(await deadLetters()).toEqual(poison);
  expect(log.errors()).toHaveLength(poison.length);
  expect(await book.usageOf(tenantId)).toHaveLength(2);
  expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 60 * RATE, ledger: GRANT - 60 * RATE });
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('books the rest at once and gives up on a record that MongoDB refuses, with the fifth refusal', async () => {
  const tenantId = await book.tenant(GRANT);
  const refused = JSON.stringify(recordOf('ten_without_account'));
  await put(JSON.stringify(recordOf(tenantId)), refused, JSON.stringify(recordOf(tenantId)));
  const settler = newSettler();

  await settler.settleShard(SHARD);
  expect(await book.usageOf(tenantId)).toHaveLength(2);
  for (const letters of [[], [], [], [refused]]) {
    time += RETRY_MS;
    await settler.settleShard(SHARD);
    expect(await deadLetters()).toEqual(letters);
  }

  expect(log.errors()).toHaveLength(1);
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('goes on with new records while an old one is still refused', async () => {
  const tenantId = await book.tenant(GRANT);
  await put(JSON.stringify(recordOf('ten_without_account')));
  const settler = newSettler();
  await settler.settleShard(SHARD);
  await put(JSON.stringify(recordOf(tenantId)));

  await settler.settleShard(SHARD);

  expect(await book.usageOf(tenantId)).toHaveLength(1);
});

it('tells the operator every 30 s that nothing is booked, and not with each round', async () => {
  await put(JSON.stringify(recordOf('ten_1')));
  const settler = newSettler({ settle: () => Promise.reject(new Error('away')) });
  const alarms: number[] = [];

  for (const ms of [0, 15_000, 14_999, 1]) {
    time += ms;
    await expect(settler.settleShard(SHARD)).rejects.toThrow('away');
    alarms.push(log.errors().length);
  }

  expect(alarms).toEqual([1, 1, 1, 2]);
  expect(blocked).toEqual(Array(4).fill('unavailable'));
});

it('gives no record up while MongoDB is away, however long, and books all of them afterwards', async () => {
  const tenantId = await book.tenant(GRANT);
  const settler = newSettler(await book.ledgerThrough(proxy.port));
  await put(...[1, 2, 3].map(() => JSON.stringify(recordOf(tenantId))));

  proxy.set('reset');
  for (let round = 0; round < 6; round += 1) {
    await expect(settler.settleShard(SHARD)).rejects.toThrow();
    time += RETRY_MS;
  }
  proxy.set('pass');
  for (let round = 0; round < 5; round += 1) await settler.settleShard(SHARD).catch(() => undefined);

  expect(await deadLetters()).toEqual([]);
  expect(await lab.outbox.length(SHARD)).toBe(0);
  expect(await book.usageOf(tenantId)).toHaveLength(3);
  expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 90 * RATE, ledger: GRANT - 90 * RATE });
});

it('books once when the answer to any step of the transaction is lost', async () => {
  const ledger = await book.ledgerThrough(proxy.port);
  for (const lost of [1, 2, 3, 4, 5, 6]) {
    const tenantId = await book.tenant(GRANT);
    await put(JSON.stringify(recordOf(tenantId)));
    const settler = newSettler(ledger);
    let answers = 0;
    proxy.cutReplies(() => ++answers === lost);

    while ((await lab.outbox.length(SHARD)) > 0) await settler.settleShard(SHARD).catch(() => undefined);

    expect(await book.usageOf(tenantId)).toHaveLength(1);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 30 * RATE, ledger: GRANT - 30 * RATE });
  }
  expect(await deadLetters()).toEqual([]);
});

it('books the others where Redis has something else in the place of one tenant’s account', async () => {
  const [tenantId, broken] = [await book.tenant(GRANT), await book.tenant(GRANT)];
  await lab.redis.set(lab.keys.account(broken), 'no hash');
  const poison = JSON.stringify(recordOf(broken));
  await put(poison);
  const settler = newSettler();
  let others = 0;
  for (; others < 30 && (await deadLetters()).length === 0; others += 1) {
    await put(JSON.stringify(recordOf(tenantId)));
    await settler.settleShard(SHARD).catch(() => undefined);
    await settler.settleShard(SHARD).catch(() => undefined);
    time += RETRY_MS;
  }

  expect(await book.usageOf(tenantId)).toHaveLength(others);
  // Its charge is booked; what Redis has of it is for an operator.
  expect(await book.usageOf(broken)).toHaveLength(1);
  expect(await deadLetters()).toEqual([poison]);
});

/** What a MongoDB says that is there and cannot serve whoever asks. */
const GLOBAL_FAULTS = [
  { code: 13, codeName: 'Unauthorized' },
  { code: 8_000, codeName: 'AtlasError' },
  { code: 14_031, codeName: 'OutOfDiskSpace' },
  { code: 50, codeName: 'MaxTimeMSExpired' },
  { code: 11_601, codeName: 'Interrupted' },
  { code: 262, codeName: 'ExceededTimeLimit' },
];
const WRITES = ['insert', 'update', 'findAndModify', 'delete'];

describe('a fault of MongoDB itself', () => {
  it.each([...GLOBAL_FAULTS, { code: 2, codeName: 'BadValue' }])(
    'dead-letters nothing, raises the alarm, and all is booked when it is over: $codeName',
    async (refusal) => {
      const tenantId = await book.tenant(GRANT);
      const settler = newSettler(await book.ledgerThrough(refusing.port));
      await put(...[1, 2, 3].map(() => JSON.stringify(recordOf(tenantId))));

      refusing.failCommands((command) => (WRITES.includes(command) ? refusal : undefined));
      for (let round = 0; round < 8; round += 1) {
        await settler.settleShard(SHARD).catch(() => undefined);
        time += RETRY_MS;
      }
      refusing.failCommands(undefined);
      expect(await deadLetters()).toEqual([]);
      expect(log.errors()).not.toEqual([]);
      expect(new Set(blocked)).toEqual(new Set([refusal.code === 2 ? 'refused' : 'unavailable']));
      await settleForLong(settler);

      expect(await lab.outbox.length(SHARD)).toBe(0);
      expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 90 * RATE, ledger: GRANT - 90 * RATE });
    },
  );

  it('is told from a record that alone is refused, even where it fills a round with its like', async () => {
    const tenantId = await book.tenant(GRANT);
    const bad = await book.tenant(GRANT);
    const refusal = { code: 2, codeName: 'BadValue' };
    refusing.failCommands((command, text) => (command === 'findAndModify' && text.includes(bad) ? refusal : undefined));
    const refused = Array.from({ length: 30 }, () => JSON.stringify(recordOf(bad)));
    await put(...refused);
    const settler = newSettler(await book.ledgerThrough(refusing.port));
    await settler.settleShard(SHARD).catch(() => undefined);
    await settler.settleShard(SHARD).catch(() => undefined);
    expect(await deadLetters()).toEqual([]);

    for (let round = 0; round < 30 && (await deadLetters()).length < refused.length; round += 1) {
      await put(JSON.stringify(recordOf(tenantId)));
      await settler.settleShard(SHARD).catch(() => undefined);
      await settler.settleShard(SHARD).catch(() => undefined);
      time += RETRY_MS;
    }

    refusing.failCommands(undefined);
    const dead = new Set(await deadLetters());
    expect([dead.size, refused.every((text) => dead.has(text))]).toEqual([refused.length, true]);
    expect(await lab.outbox.length(SHARD)).toBe(0);
    const { account, ledger } = await book.balanceOf(tenantId);
    expect(account).toBe(ledger);
    expect(account).toBeLessThan(GRANT);
  });
});

it('books a dead letter once its fault is gone, and leaves what cannot be read', async () => {
  const tenantId = newId('ten');
  await put('not JSON', JSON.stringify(recordOf(tenantId)));
  const settler = newSettler();
  await settleForLong(settler);
  expect(await deadLetters()).toHaveLength(2);
  await book.accounts.open(tenantId);

  expect(await lab.outbox.requeue(SHARD)).toEqual({ requeued: 1, left: 1 });
  await settler.settleShard(SHARD);

  expect(await deadLetters()).toEqual(['not JSON']);
  expect(await book.usageOf(tenantId)).toHaveLength(1);
  expect(await lab.outbox.requeue(SHARD)).toEqual({ requeued: 0, left: 1 });
});
