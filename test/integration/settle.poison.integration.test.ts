import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';

import { createLeaderLease } from '../../shared/infra/redis/leases/leader-lease.ts';
import { createSettler } from '../../workers/settlement/settle.ts';
import type { SettleDeps, Settler } from '../../workers/settlement/settle.ts';
import { openBookLab, recordOf } from '../support/book-lab.ts';
import type { BookLab } from '../support/book-lab.ts';
import { startLossyProxy } from '../support/lossy-proxy.ts';
import type { LossyProxy } from '../support/lossy-proxy.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import type { RecordingLog } from '../support/recording-log.ts';
import { openRequestLab, RATE, SHARD } from '../support/request-lab.ts';
import type { RequestLab } from '../support/request-lab.ts';
import { mongoUri } from '../support/stores.ts';

const GRANT = 1_000 * RATE;
const LOOK_BACK_MS = 5_000;

let lab: RequestLab;
let book: BookLab;
let proxy: LossyProxy;
let log: RecordingLog;
let time = 0;
beforeAll(async () => {
  book = await openBookLab();
  proxy = await startLossyProxy(mongoUri(''));
});
afterAll(async () => {
  await book.close();
  await proxy.close();
});
beforeEach(async () => {
  lab = await openRequestLab();
  log = createRecordingLog();
});
afterEach(async () => {
  await lab.close();
});

function newSettler(ledger: SettleDeps['ledger'] = book.ledger): Settler {
  return createSettler({
    outbox: lab.outbox,
    ledger,
    accounts: lab.accounts,
    leases: createLeaderLease(lab.redis, lab.keyspace, 'process'),
    clock: { now: () => time },
    events: { emit: () => undefined },
    publishBooked: () => Promise.resolve(),
    log,
  });
}

async function put(...texts: string[]): Promise<void> {
  for (const text of texts) await lab.redis.xadd(lab.keys.outbox, '*', 's', text);
}

const parked = async () => (await lab.redis.xrange(lab.keys.parked, '-', '+')).map(([, fields]) => fields[1] ?? '');

/** As many looks back as a record gets before it is given up. */
async function settleForLong(settler: Settler): Promise<void> {
  for (let round = 0; round < 6; round += 1) {
    await settler.settleShard(SHARD);
    time += LOOK_BACK_MS;
  }
}

it('puts aside what is no record, tells the operator, and books the rest', async () => {
  const tenantId = await book.tenant(GRANT);
  const good = JSON.stringify(recordOf(tenantId));
  const { costMicro, ...withoutCost } = recordOf(tenantId);
  const poison = [
    'not JSON',
    '',
    'null',
    '"text"',
    '[]',
    '{}',
    JSON.stringify(withoutCost),
    JSON.stringify({ ...withoutCost, costMicro: -costMicro }),
    JSON.stringify({ ...withoutCost, costMicro: 0.5 }),
    JSON.stringify({ ...withoutCost, costMicro: String(costMicro) }),
    JSON.stringify({ ...withoutCost, costMicro: null }),
    JSON.stringify({ ...withoutCost, costMicro, requestId: { $gt: '' } }),
  ];
  await put(good, ...poison, JSON.stringify(recordOf(tenantId)));

  await newSettler().settleShard(SHARD);

  expect(await parked()).toEqual(poison);
  expect(log.errors()).toHaveLength(poison.length);
  expect(await book.usageOf(tenantId)).toHaveLength(2);
  expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 60 * RATE, ledger: GRANT - 60 * RATE });
  expect(await lab.outbox.length(SHARD)).toBe(0);
});

it('books the rest at once and gives up later on a record that MongoDB refuses', async () => {
  const tenantId = await book.tenant(GRANT);
  const refused = JSON.stringify(recordOf('ten_without_account'));
  await put(JSON.stringify(recordOf(tenantId)), refused, JSON.stringify(recordOf(tenantId)));
  const settler = newSettler();

  await settler.settleShard(SHARD);
  expect(await book.usageOf(tenantId)).toHaveLength(2);
  expect(await parked()).toEqual([]);
  await settleForLong(settler);

  expect(await parked()).toEqual([refused]);
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

it('gives no record up while MongoDB is away, however long, and books all of them afterwards', async () => {
  const tenantId = await book.tenant(GRANT);
  const settler = newSettler(await book.ledgerThrough(proxy.port));
  await put(...[1, 2, 3].map(() => JSON.stringify(recordOf(tenantId))));

  proxy.setDown(true);
  for (let round = 0; round < 6; round += 1) {
    await expect(settler.settleShard(SHARD)).rejects.toThrow();
    time += LOOK_BACK_MS;
  }
  proxy.setDown(false);
  for (let round = 0; round < 5; round += 1) await settler.settleShard(SHARD).catch(() => undefined);

  expect(await parked()).toEqual([]);
  expect(await lab.outbox.length(SHARD)).toBe(0);
  expect(await book.usageOf(tenantId)).toHaveLength(3);
  expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 90 * RATE, ledger: GRANT - 90 * RATE });
}, 30_000);

it('books once when the answer to any step of the transaction is lost', async () => {
  const ledger = await book.ledgerThrough(proxy.port);
  for (const lost of [1, 2, 3, 4, 5, 6]) {
    const tenantId = await book.tenant(GRANT);
    await put(JSON.stringify(recordOf(tenantId)));
    const settler = newSettler(ledger);
    let answers = 0;
    proxy.loseReplies(() => ++answers === lost);

    while ((await lab.outbox.length(SHARD)) > 0) await settler.settleShard(SHARD).catch(() => undefined);

    expect(await book.usageOf(tenantId)).toHaveLength(1);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - 30 * RATE, ledger: GRANT - 30 * RATE });
  }
  expect(await parked()).toEqual([]);
}, 30_000);
