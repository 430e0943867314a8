import { afterEach, beforeAll, expect, it } from '@jest/globals';

import { createShardClocks } from '../../../shared/redis/scripts.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { openAdmissionLab } from '../../support/admission-lab.ts';
import type { LabKey } from '../../support/admission-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const clocks = createShardClocks();
const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
const lab = useStarted('lab', () => openAdmissionLab({ url: proxy.url, clocks }));
let key: LabKey;
beforeAll(async () => {
  key = await lab.key();
  // The process has heard of the shard before: its first call knows no time of Redis.
  await key.admit();
});
afterEach(() => {
  proxy.set('pass');
});

it('does not let in what reaches Redis when its sender has given up', async () => {
  const requestId = newId('req');
  const waiting = await lab.redis.zcard(lab.keys.prioritized('interactive'));
  proxy.set('silent');
  await expect(key.admit({ requestId })).rejects.toThrow('Command timed out');
  proxy.set('pass');

  // Redis answers a connection's commands in their order: this one came behind the admission.
  expect(await lab.redis.exists(lab.keys.record(requestId), lab.keys.job('interactive', requestId))).toBe(0);
  expect(await lab.redis.zcard(lab.keys.prioritized('interactive'))).toBe(waiting);
});

it('lets in what reaches Redis while its sender waits', async () => {
  proxy.set('silent');
  const admitted = key.admit();
  setTimeout(() => {
    proxy.set('pass');
  }, 700);

  expect((await admitted).verdict).toBe('admitted');
});

it.each([
  ['ahead, as where another master has taken over', -60_000],
  ['back', 60_000],
])("lets a request in when Redis's clock has been set %s", async (_way, known) => {
  const { shard } = key.principal;
  const moment = performance.now();
  const shown = clocks.at(shard, moment) ?? 0;
  clocks.learn(shard, shown + known, moment, moment);

  expect((await key.admit()).verdict).toBe('admitted');
  expect(Math.abs((clocks.at(shard, moment) ?? 0) - shown)).toBeLessThan(1_000);
});
