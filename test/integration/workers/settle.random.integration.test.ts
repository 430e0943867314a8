import { beforeAll, expect, it } from '@jest/globals';

import type { SettlementRecord } from '../../../shared/contracts/settlement.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createOutbox } from '../../../shared/requests/outbox.ts';
import type { SettlementRepository } from '../../../shared/mongo/accounts/settlement-repository.ts';
import { createSettler } from '../../../workers/settlement/settle.ts';
import type { Settler } from '../../../workers/settlement/settle.ts';
import { createChance } from '../../support/chance.ts';
import { openLedgerLab, recordOf } from '../../support/ledger-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openRequestLab, SHARD } from '../../support/request-lab.ts';
import { mongoUri, redisUrl } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const SEED = 20_261_121;
const RECORDS = 500;
const TENANTS = 5;
const GRANT = 1_000_000_000_000;

const chance = createChance(SEED);

const proxies = {
  redis: useStarted('proxy', () => openTcpProxy(redisUrl())),
  mongo: useStarted('proxy', () => openTcpProxy(mongoUri(''))),
};
const lab = useStarted('lab', openRequestLab);
const book = useStarted('book', openLedgerLab);
let ledger: SettlementRepository;
beforeAll(async () => {
  ledger = await book.ledgerThrough(proxies.mongo.port);
});

function randomRecord(tenantId: string): SettlementRecord {
  const [promptTokens, completionTokens] = [chance.below(1_000), 1 + chance.below(1_000)];
  const mode = chance.is(0.2) ? 'test' : 'live';
  const costMicro = mode === 'test' ? 0 : (promptTokens + completionTokens) * 1_000 + chance.below(1_000);
  return recordOf(tenantId, { mode, promptTokens, completionTokens, costMicro });
}

/** As finish.lua leaves it: a pending charge of live keys, and an entry in the outbox. */
async function finish({ requestId, tenantId, costMicro, mode }: SettlementRecord, text: string): Promise<void> {
  const commands = lab.redis.multi();
  if (mode === 'live') {
    commands.hset(lab.keys.pending(tenantId), requestId, `${costMicro}:1:202611`);
    commands.hincrby(lab.keys.account(tenantId), 'pending', costMicro);
    commands.hincrby(lab.keys.account(tenantId), 'pendingTokens:202611', 1);
  }
  await commands.xadd(lab.keys.outbox, '*', 's', text).exec();
}

/** One process: its own connection to Redis through the proxy. */
async function newProcess(name: string): Promise<Settler> {
  const client = await lab.connect(`redis://127.0.0.1:${proxies.redis.port}`);
  const outbox = createOutbox(client, lab.keyspace);
  const accounts = createAccountStore(client, lab.keyspace);
  const mayDie = async <T>(result: T): Promise<T> => {
    await Promise.resolve();
    if (chance.is(0.1)) throw new Error('The process was killed');
    return result;
  };
  return createSettler({
    outbox: { ...outbox, acknowledge: async (shard, ids) => outbox.acknowledge(shard, await mayDie(ids)) },
    accounts: {
      ...accounts,
      publishBalance: async (shard, tenantId, ...rest) =>
        accounts.publishBalance(shard, await mayDie(tenantId), ...rest),
    },
    tenants: { elsewhere: () => Promise.resolve([]) },
    ledger: { settle: async (records, now) => mayDie(await ledger.settle(records, now)) },
    leases: createLeaderLease(client, lab.keyspace, name),
    // Every look goes back: in this test no time passes between a loss and its repair.
    clock: { now: () => (time += 5_000) },
    events: { emit: () => undefined },
    publishBooked: () => Promise.resolve(),
    log: createRecordingLog(),
  });
}
let time = 0;

it(`adds up after ${RECORDS} records, lost answers, deaths and duplicates`, async () => {
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => book.tenant(GRANT)));
  for (const tenantId of tenants) {
    await lab.accounts.publishBalance(SHARD, tenantId, { balanceMicro: GRANT, version: 1, tokensByMonth: {} });
  }
  const records = Array.from({ length: RECORDS }, () => randomRecord(tenants[chance.below(TENANTS)] ?? ''));
  const processes = [await newProcess('first'), await newProcess('second')];
  proxies.redis.cutReplies(() => chance.is(0.02));
  proxies.mongo.cutReplies(() => chance.is(0.02));

  for (let from = 0; from < RECORDS; from += 25) {
    for (const record of records.slice(from, from + 25)) {
      await finish(record, JSON.stringify(record));
      if (chance.is(0.1)) await lab.redis.xadd(lab.keys.outbox, '*', 's', JSON.stringify(record));
    }
    for (const settler of processes) {
      await settler.settleShard(SHARD).catch(() => undefined);
      if (chance.is(0.3)) await settler.release(SHARD);
    }
  }
  for (const proxy of Object.values(proxies)) proxy.cutReplies(undefined);
  const last = await newProcess('last');
  for (const settler of processes) await settler.release(SHARD);
  for (let round = 0; round < 200 && (await lab.outbox.length(SHARD)) > 0; round += 1) {
    await last.settleShard(SHARD).catch(() => undefined);
  }

  expect(await lab.redis.xlen(lab.keys.deadLetters)).toBe(0);
  expect(await book.models.ledger.countDocuments({ type: 'usage' })).toBe(RECORDS);
  for (const tenantId of tenants) {
    const spent = records.reduce((sum, record) => sum + (record.tenantId === tenantId ? record.costMicro : 0), 0);
    expect(await book.balanceOf(tenantId)).toEqual({ account: GRANT - spent, ledger: GRANT - spent });
    const usage = await book.usageOf(tenantId);
    const tokens = usage.reduce((sum, row) => sum + (row.promptTokens ?? 0) + (row.completionTokens ?? 0), 0);
    const sum = { requests: usage.length, tokens, costMicro: spent };
    expect(await book.rolledUp(tenantId)).toEqual(Array.from({ length: 6 }, () => sum));
    expect(await lab.accounts.read(SHARD, tenantId, '202611')).toMatchObject({
      ledgerMicro: GRANT - spent,
      pendingMicro: 0,
    });
    expect(await lab.redis.hlen(lab.keys.pending(tenantId))).toBe(0);
  }
});
