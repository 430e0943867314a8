import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { startRedis } from '../../../scripts/embedded/redis.ts';
import type { EmbeddedRedis } from '../../../scripts/embedded/redis.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { chatOf } from '../../support/chat.ts';
import { startService } from '../../support/service.ts';
import type { TestService, TestTenant } from '../../support/service.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, openTestRedis, uniqueName } from '../../support/stores.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { BUDGETS } from './budgets.ts';
import type { Budget, BudgetCase } from './budgets.ts';

/** Scripts are loaded, connections opened and caches filled by the first requests. */
const WARM_REQUESTS = 32;
/** How long nothing is asked, to count what the processes do by themselves. */
const IDLE_MS = 3_000;
/** A change of a route reaches every process within 1 s (docs/spec.md#administration). */
const ROUTE_CHANGE_MS = 1_000;
/** This test's own commands, beside the meters. */
const OWN_COMMANDS: ReadonlySet<string> = new Set(['info', 'xlen']);

type StoreCounts = Omit<Budget, 'providerCalls'>;

/**
 * A Redis of its own, so that nobody else's commands are counted. What the processes do without a request is counted
 * first and taken off by time.
 */
/** Requests of each client before counting begins. */
const WARM_ROUNDS = 4;

describe('what a request asks of the stores', () => {
  let dataDir: string;
  let server: EmbeddedRedis;
  let redis: TcpProxy;
  let mongo: TcpProxy;
  /** Beside the meter. */
  let observer: RedisClient;
  let service: TestService;
  let tenant: TestTenant;
  let idlePerMs: StoreCounts;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-budget-'));
    server = await startRedis({ dataDir, log: () => undefined });
    observer = await openTestRedis('producer', server.url);
    redis = await openTcpProxy(server.url);
    mongo = await openTcpProxy(mongoUri(uniqueName('budget')));
    service = await startService({ env: { REDIS_URL: redis.url, MONGODB_URI: mongo.url } });
    tenant = await service.startTenant({ credits: 1_000_000_000 });
    for (const stream of [false, true]) await askAll({ stream, clients: WARM_REQUESTS, requests: WARM_REQUESTS });
    const { counts, ms } = await countDuring(() => pause(IDLE_MS));
    idlePerMs = mapCounts(counts, (_name, value) => value / ms);
  });
  afterAll(async () => {
    await service.close();
    observer.disconnect();
    await redis.close();
    await mongo.close();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function count(): Promise<StoreCounts> {
    const stats = (await observer.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
    const calls = [...stats].map(([, name = '', found]) => (OWN_COMMANDS.has(name) ? 0 : Number(found)));
    return {
      redisCalls: redis.commands(),
      redisCommands: calls.reduce((sum, each) => sum + each, 0),
      redisBytesIn: redis.bytesIn(),
      redisBytesOut: redis.bytesOut(),
      mongoOperations: mongo.commands(),
    };
  }

  async function countDuring(act: () => Promise<unknown>): Promise<{ counts: StoreCounts; ms: number }> {
    const startedAt = performance.now();
    const before = await count();
    await act();
    const after = await count();
    const counts = mapCounts(after, (name, value) => value - before[name]);
    return { counts, ms: performance.now() - startedAt };
  }

  async function ask(stream: boolean): Promise<void> {
    const response = await fetch(`${service.url}/platform/v1/chat${stream ? '/stream' : ''}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tenant.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(chatOf('How does a river find its way to the sea?', { max_tokens: 500 })),
    });
    expect(await response.text()).toContain('"finish_reason":"stop"');
  }

  /** Resolves when the last request is in the ledger. */
  async function askAll({ stream, clients, requests }: Omit<BudgetCase, 'model'>): Promise<void> {
    let left = requests;
    const client = async () => {
      while (left-- > 0) await ask(stream);
    };
    await Promise.all(Array.from({ length: clients }, client));
    const { outbox } = service.keyspace.shard(0);
    await waitUntil(async () => (await observer.xlen(outbox)) === 0, 'the settlement');
  }

  it.each(Object.entries(BUDGETS))('a request stays within its budget: %s', async (name, { budget, ...kase }) => {
    await service.setTargets('mobius', [{ provider: 'simulated', model: kase.model, context_window: 128_000 }]);
    await pause(ROUTE_CHANGE_MS);
    // Until it is known how many calls the new target takes at once, workers take few requests at a time.
    if (kase.clients > 1) await askAll({ ...kase, requests: kase.clients * WARM_ROUNDS });
    const callsBefore = service.provider.stats().calls;

    const { counts, ms } = await countDuring(() => askAll(kase));

    const found: Budget = {
      ...mapCounts(counts, (figure, value) => round((value - idlePerMs[figure] * ms) / kase.requests)),
      providerCalls: (service.provider.stats().calls - callsBefore) / kase.requests,
    };
    if (process.env['SHOW_COUNTS'] === '1') console.log(name, found);
    expect(overBudget(found, budget)).toEqual({});
  });
});

function mapCounts(counts: StoreCounts, map: (name: keyof StoreCounts, value: number) => number): StoreCounts {
  return {
    redisCalls: map('redisCalls', counts.redisCalls),
    redisCommands: map('redisCommands', counts.redisCommands),
    redisBytesIn: map('redisBytesIn', counts.redisBytesIn),
    redisBytesOut: map('redisBytesOut', counts.redisBytesOut),
    mongoOperations: map('mongoOperations', counts.mongoOperations),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function overBudget(found: Budget, budget: Budget): Partial<Record<keyof Budget, string>> {
  const names = Object.keys(budget) as (keyof Budget)[];
  const over = names.filter((name) => found[name] > budget[name]);
  return Object.fromEntries(over.map((name) => [name, `${found[name]}, at most ${budget[name]}`]));
}
