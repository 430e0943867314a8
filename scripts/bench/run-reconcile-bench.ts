import { setTimeout as pause } from 'node:timers/promises';

import type { SettlementRecord } from '../../shared/contracts/settlement.ts';
import { monthOf } from '../../shared/domain/pricing.ts';
import { BUCKET_MS, rollUp, rollUpIdOf } from '../../shared/domain/roll-up.ts';
import type { RollUp } from '../../shared/domain/roll-up.ts';
import { createReconciliationRepository } from '../../shared/mongo/accounts/reconciliation-repository.ts';
import { createSettlementRepository } from '../../shared/mongo/accounts/settlement-repository.ts';
import { ledgerIdOf } from '../../shared/mongo/accounts/ledger-repository.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import { createModels, prepareDatabase } from '../../shared/mongo/catalogue.ts';
import type { Models } from '../../shared/mongo/catalogue.ts';
import { newId } from '../../shared/lifecycle/ids.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { superviseMongo } from '../harness/stores.ts';
import { figure, formatTable } from './format-table.ts';

/** Insertion takes most of the time, so batches are large and several run at once. */
const INSERTED_AT_ONCE = 5_000;
const DAYS = 30;
/** Older than rows by the minute are kept, so that only rows by hour and day must be filled. */
const OLDEST_MS = 90 * BUCKET_MS['1d'];
const ENTITIES = 10;
/** The steady load: this many requests are booked at each interval. */
const BOOKED_AT_ONCE = 10;
const BOOK_EVERY_MS = 100;
const COST_MICRO = 700;

interface Filled {
  tenantId: string;
  keyId: string;
}

function recordOf({ tenantId, keyId }: Filled, index: number, acceptedAt: number): SettlementRecord {
  return {
    requestId: newId('req'),
    tenantId,
    keyId,
    acceptedAt,
    mode: 'live',
    tier: 'mobius',
    endpoint: 'chat',
    provider: 'simulated',
    model: 'sim',
    entityId: `entity-${index % ENTITIES}`,
    estimated: false,
    promptTokens: 200,
    completionTokens: 500,
    costMicro: COST_MICRO,
    finishReason: 'stop',
    finishedAt: acceptedAt + 1_000,
  };
}

function toEntry(record: SettlementRecord, index: number) {
  const { requestId, costMicro, finishedAt, ...fields } = record;
  return {
    ...fields,
    _id: ledgerIdOf(requestId),
    requestId,
    type: 'usage' as const,
    amountMicro: 0 - costMicro,
    balanceAfterMicro: 0 - (index + 1) * costMicro,
    createdAt: finishedAt,
  };
}

/** Creates a tenant with this many requests in its ledger, and matching account and usage. */
async function fill(models: Models, rows: number): Promise<Filled> {
  const filled = { tenantId: newId('ten'), keyId: newId('key') };
  const { tenantId } = filled;
  const startMs = Date.now() - OLDEST_MS - ((Date.now() - OLDEST_MS) % BUCKET_MS['1d']);
  const stepMs = (DAYS * BUCKET_MS['1d']) / rows;
  const sums = new Map<string, RollUp>();
  const tokensByMonth: Record<string, number> = {};
  let lastEntryAt = 0;
  for (let from = 0; from < rows; from += INSERTED_AT_ONCE) {
    const records = Array.from({ length: Math.min(INSERTED_AT_ONCE, rows - from) }, (_, at) =>
      recordOf(filled, from + at, startMs + Math.floor((from + at) * stepMs)),
    );
    await models.ledger.collection.insertMany(records.map((record, at) => toEntry(record, from + at)) as never[], {
      ordered: false,
    });
    for (const { acceptedAt } of records)
      tokensByMonth[monthOf(acceptedAt)] = (tokensByMonth[monthOf(acceptedAt)] ?? 0) + 700;
    lastEntryAt = records.at(-1)?.finishedAt ?? lastEntryAt;
    for (const row of rollUp(records)) {
      if (row.key.width === '1m') continue;
      const id = rollUpIdOf(row.key);
      const known = sums.get(id);
      if (known === undefined) sums.set(id, row);
      else
        for (const name of Object.keys(row.counts) as (keyof RollUp['counts'])[])
          known.counts[name] += row.counts[name];
    }
  }
  const usage = [...sums].map(([_id, { key, counts }]) => ({ _id, ...key, ...counts }));
  for (let from = 0; from < usage.length; from += INSERTED_AT_ONCE)
    await models.usageRollUps.insertMany(usage.slice(from, from + INSERTED_AT_ONCE), { ordered: false, lean: true });
  await models.accounts.create({
    _id: tenantId,
    balanceMicro: 0 - rows * COST_MICRO,
    version: rows,
    tokensByMonth,
    lastEntryAt,
  });
  return filled;
}

interface Measured {
  name: string;
  seconds: number;
  /** On top of what the process used before. */
  memoryMiB: number;
  booked: number;
  drift: number;
}

/** Runs a check under the steady load and watches the memory meanwhile. */
async function measure(name: string, book: () => Promise<number>, check: () => Promise<number>): Promise<Measured> {
  global.gc?.();
  const before = process.memoryUsage().rss;
  let highest = before;
  let booked = 0;
  const end = new AbortController();
  const load = (async () => {
    while (!end.signal.aborted) {
      booked += await book();
      await pause(BOOK_EVERY_MS);
    }
  })();
  const watch = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage().rss);
  }, 50);
  const startedAt = performance.now();
  const drift = await check();
  const seconds = (performance.now() - startedAt) / 1000;
  end.abort();
  clearInterval(watch);
  await load;
  return { name, seconds, memoryMiB: (highest - before) / 1024 / 1024, booked, drift };
}

/** Time and memory of reconciling a large ledger while requests are booked. Returns the exit code. */
export async function runReconcileBench(
  { supervisor, dataDir }: SupervisedTask,
  { rows }: { rows: number },
  print: (line: string) => void,
): Promise<number> {
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const mongo = await superviseMongo({ supervisor, dataDir, log });
  await prepareDatabase(mongo.uri, { warn: log });
  const connection = await connectMongo(mongo.uri);
  supervisor.defer('the connection', () => connection.close());
  const models = createModels(connection);
  const fillingAt = performance.now();
  const filled = await fill(models, rows);
  log(`${rows} ledger entries are there after ${((performance.now() - fillingAt) / 1000).toFixed(0)} s`);

  const settlement = createSettlementRepository(connection);
  const books = createReconciliationRepository(connection);
  const book = async () => {
    const records = Array.from({ length: BOOKED_AT_ONCE }, (_, at) => recordOf(filled, at, Date.now()));
    await settlement.settle(records, Date.now());
    return records.length;
  };
  const check = async () => {
    const checked = await books.check(filled.tenantId, { onDrift: 'repair', now: Date.now() });
    return checked === undefined
      ? NaN
      : checked.balanceDriftMicro + checked.budgetDriftTokens + checked.usageDriftTokens;
  };
  const measured = [
    await measure('first, without a checkpoint', book, check),
    await measure('second, from the checkpoint', book, check),
  ];
  const table = formatTable(
    ['run', 'seconds', 'memory MiB', 'booked meanwhile', 'drift'],
    measured.map((run) => [
      run.name,
      run.seconds.toFixed(2),
      figure(run.memoryMiB),
      String(run.booked),
      String(run.drift),
    ]),
    [0],
  );
  print(['', ...table, '', `MongoDB: ${mongo.label}; one tenant with ${rows} ledger entries.`].join('\n'));
  const isFine = measured.every(({ drift }) => drift === 0);
  print(`${isFine ? 'PASS' : 'FAIL'}  no drift is found beside requests that are booked`);
  return isFine ? 0 : 1;
}
