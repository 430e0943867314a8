import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { watchReturn } from '../../../shared/redis/redis-return.ts';
import type { RedisReturn } from '../../../shared/redis/redis-return.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { openTestRedis, redisUrl, uniqueName } from '../../support/stores.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';
import { useStarted } from '../../support/use-service.ts';

describe.each(['worker', 'producer'] as const)('the outages of a Redis that hangs, as a %s sees them', (role) => {
  let outages: RedisReturn;
  let returns = 0;
  afterAll(() => {
    outages.stop();
  });
  const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
  const client = useStarted('client', () => openTestRedis(role, proxy.url));
  beforeAll(() => {
    client.on('error', () => undefined);
    outages = watchReturn(client, createKeyspace());
    outages.onReturn(() => (returns += 1));
  });

  const isAway = () => (outages.hasReconnectedRecently(0) ? true : undefined);

  it('begin when it has not answered for some seconds, and end once with its next answer', async () => {
    expect([isAway(), outages.lastAwayMs(0)]).toEqual([undefined, 0]);
    proxy.set('silent');
    expect(await waitFor(isAway, 'the outage')).toBe(true);
    expect(returns).toBe(0);

    proxy.set('pass');

    await waitUntil(() => returns > 0, 'the return');
    expect(outages.hasReconnectedRecently(0)).toBe(true);
    expect(outages.lastAwayMs(0)).toBeGreaterThanOrEqual(3_000);
    await pause(2_500);
    expect(returns).toBe(1);
  });
});

describe('a process that starts', () => {
  const keyspace = createKeyspace(uniqueName('outages-'));
  const { incarnation } = keyspace.shard(0);
  const clients: RedisClient[] = [];
  afterAll(async () => {
    await clients[0]?.del(incarnation);
    for (const client of clients) client.disconnect();
  });

  /** Meets the shard as a worker does when it starts. */
  async function start(): Promise<{ outages: RedisReturn; client: RedisClient }> {
    const client = await openTestRedis('worker');
    clients.push(client);
    const outages = watchReturn(client, keyspace);
    const meeting = outages.meet(0);
    // Nobody may be taken over before the answer is there.
    expect(outages.hasReconnectedRecently(0)).toBe(true);
    await meeting;
    outages.stop();
    return { outages, client };
  }

  it('waits like the others where another server has come back, or was promoted, a moment ago', async () => {
    const { client } = await start();
    // Of the server before.
    await client.hset(incarnation, 'id', 'another', 'since', 1);

    const [first, second] = [await start(), await start()];

    const recent = ({ outages }: typeof first) => outages.hasReconnectedRecently(0, 5_000);
    expect([recent(first), recent(second)]).toEqual([true, true]);
  });

  it('waits for nobody where the server has been there all along', async () => {
    const { client } = await start();
    await client.hset(incarnation, 'since', Date.now() - 6_000);

    const { outages } = await start();

    expect(outages.hasReconnectedRecently(0)).toBe(false);
  });
});
