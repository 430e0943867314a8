import { setTimeout as pause } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { connectRedis, createRedis } from '../../shared/infra/redis/connection.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import { createKeyspace } from '../../shared/infra/redis/keyspace.ts';
import { watchOutages } from '../../shared/infra/redis/outages.ts';
import type { Outages } from '../../shared/infra/redis/outages.ts';
import { proxyTo } from '../support/store-proxy.ts';
import type { StoreProxy } from '../support/store-proxy.ts';
import { redisUrl } from '../support/stores.ts';
import { waitFor } from '../support/wait-for.ts';

describe.each(['worker', 'producer'] as const)('the outages of a Redis that hangs, as a %s sees them', (role) => {
  let proxy: StoreProxy;
  let client: RedisClient;
  let outages: Outages;
  let returns = 0;
  beforeAll(async () => {
    proxy = await proxyTo(redisUrl());
    client = createRedis(proxy.url, role);
    client.on('error', () => undefined);
    await connectRedis(client);
    outages = watchOutages(client, createKeyspace());
    outages.onReturn(() => (returns += 1));
  });
  afterAll(async () => {
    outages.stop();
    client.disconnect();
    await proxy.close();
  });

  const isAway = () => (outages.hasReconnectedRecently(0) ? true : undefined);

  it('begin when it has not answered for some seconds, and end once with its next answer', async () => {
    expect([isAway(), outages.lastAwayMs(0)]).toEqual([undefined, 0]);
    proxy.stall();
    expect(await waitFor(isAway, 'the outage')).toBe(true);
    expect(returns).toBe(0);

    proxy.restore();

    await waitFor(() => (returns > 0 ? true : undefined), 'the return');
    expect(outages.hasReconnectedRecently(0)).toBe(true);
    expect(outages.lastAwayMs(0)).toBeGreaterThanOrEqual(3_000);
    await pause(2_500);
    expect(returns).toBe(1);
  });
});
