import { newId } from '../../shared/lifecycle/ids.ts';
import { BUCKET_MS, rollUp, rollUpIdOf } from '../../shared/domain/roll-up.ts';
import type { BookedRequest, RollUp } from '../../shared/domain/roll-up.ts';
import { monthStart } from '../../api/resources/usage/usage-query.ts';
import { connectMongo } from '../../shared/mongo/connection.ts';
import { createModels } from '../../shared/mongo/catalogue.ts';
import { superviseProvider } from '../harness/supervise-provider.ts';
import type { SupervisedTask } from '../harness/run-supervised.ts';
import { figure, formatTable } from './format-table.ts';
import { startParley } from './systems.ts';
import type { Parley } from './systems.ts';

const REQUESTS = 1_000_000;
const KEYS = 4;
const ENTITIES = 100;
/** The goal for a month. */
const LIMIT_MS = 100;
const CALLS = 30;
const INSERTED_AT_ONCE = 5_000;
const SLICE = 100_000;

/** The last complete month, so that every day of it has its share. */
function lastMonth(now: number): { startMs: number; endMs: number } {
  const endMs = monthStart(now);
  return { startMs: monthStart(endMs - 1), endMs };
}

/** Requests spread evenly over the month by multipliers that share no factor with the counts: the same every run. */
function requestOf(index: number, tenantId: string, keys: readonly string[], startMs: number, spanMs: number) {
  const request: BookedRequest = {
    tenantId,
    keyId: keys[index % KEYS] ?? '',
    tier: index % 3 === 0 ? 'oloid' : 'mobius',
    mode: index % 7 === 0 ? 'test' : 'live',
    endpoint: index % 2 === 0 ? 'chat' : 'chat.stream',
    entityId: `entity-${(index * 7_919) % ENTITIES}`,
    acceptedAt: startMs + Math.floor((index / REQUESTS) * spanMs),
    promptTokens: 200 + (index % 50),
    completionTokens: 300 + (index % 90),
    costMicro: 500_000_000,
    estimated: false,
  };
  return request;
}

/** A whole month's rows by hour and day. Rows by minute, of which `/usage` reads at most a day, are left out. */
function monthOf(tenantId: string, startMs: number, spanMs: number): Map<string, RollUp> {
  const keys = Array.from({ length: KEYS }, () => newId('key'));
  const rows = new Map<string, RollUp>();
  for (let from = 0; from < REQUESTS; from += SLICE) {
    const slice = Array.from({ length: SLICE }, (_, at) => requestOf(from + at, tenantId, keys, startMs, spanMs));
    for (const part of rollUp(slice)) {
      if (part.key.width === '1m') continue;
      const id = rollUpIdOf(part.key);
      const known = rows.get(id);
      if (known === undefined) rows.set(id, part);
      else
        for (const name of Object.keys(part.counts) as (keyof RollUp['counts'])[])
          known.counts[name] += part.counts[name];
    }
  }
  return rows;
}

async function fill({ tenantId, mongo }: Parley, startMs: number, spanMs: number): Promise<number> {
  const connection = await connectMongo(mongo.uri);
  const { usageRollUps } = createModels(connection);
  const rows = [...monthOf(tenantId, startMs, spanMs)].map(([_id, { key, counts }]) => ({ _id, ...key, ...counts }));
  for (let from = 0; from < rows.length; from += INSERTED_AT_ONCE)
    await usageRollUps.insertMany(rows.slice(from, from + INSERTED_AT_ONCE), { ordered: false, lean: true });
  await connection.close();
  return rows.length;
}

interface Timed {
  name: string;
  medianMs: number;
  worstMs: number;
  requests: number;
}

async function timeQuery({ url, headers }: Parley, name: string, query: string): Promise<Timed> {
  const times: number[] = [];
  let requests = 0;
  for (let call = 0; call < CALLS; call += 1) {
    const startedAt = performance.now();
    const response = await fetch(`${url}/usage?${query}`, { headers });
    // As docs/spec.md#usage describes it.
    const page = (await response.json()) as { data?: { results: { requests: number }[] }[] };
    times.push(performance.now() - startedAt);
    if (!response.ok) throw new Error(`GET /usage?${query} answered ${response.status}.`);
    requests = (page.data ?? []).flatMap(({ results }) => results).reduce((sum, result) => sum + result.requests, 0);
  }
  times.sort((left, right) => left - right);
  return { name, medianMs: times[CALLS / 2] ?? NaN, worstMs: times.at(-1) ?? NaN, requests };
}

function queriesOf(startMs: number, endMs: number): [string, string][] {
  const month = `start_time=${startMs / 1000}&end_time=${endMs / 1000}`;
  const week = `start_time=${startMs / 1000}&end_time=${(startMs + 7 * BUCKET_MS['1d']) / 1000}`;
  return [
    ['the month by day', month],
    ['the month by day, by key and model', `${month}&group_by=key_id,model`],
    ['the month by day, by mode and endpoint', `${month}&group_by=mode,endpoint`],
    ['the month by day, of one entity', `${month}&entity_id=entity-7`],
    ['a week by hour, by model', `${week}&bucket_width=1h&limit=168&group_by=model`],
  ];
}

/** How long `GET /usage` takes over a month of a million requests. Returns the exit code. */
export async function runUsageBench(
  { supervisor, dataDir }: SupervisedTask,
  print: (line: string) => void,
): Promise<number> {
  const log = (line: string) => {
    print(`bench | ${line}`);
  };
  const provider = await superviseProvider(supervisor, dataDir);
  const parley = await startParley({ supervisor, dataDir, providerUrl: provider.url, log });
  const { startMs, endMs } = lastMonth(Date.now());
  const rows = await fill(parley, startMs, endMs - startMs);
  log(`${REQUESTS} requests are ${rows} rows by hour and by day`);
  const timed: Timed[] = [];
  for (const [name, query] of queriesOf(startMs, endMs)) timed.push(await timeQuery(parley, name, query));
  const isFine = timed.every(({ medianMs }) => medianMs < LIMIT_MS);
  const table = formatTable(
    ['GET /usage', 'median ms', 'worst ms', 'requests in it'],
    timed.map(({ name, medianMs, worstMs, requests }) => [name, figure(medianMs), figure(worstMs), String(requests)]),
    [0],
  );
  print(['', ...table, '', `MongoDB: ${parley.mongo.label}; ${CALLS} calls each, over HTTP.`].join('\n'));
  print(`${isFine ? 'PASS' : 'FAIL'}  every median is below ${LIMIT_MS} ms`);
  return isFine ? 0 : 1;
}
