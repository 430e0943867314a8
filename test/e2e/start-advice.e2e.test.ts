import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';

import { openFleet } from '../support/fleet.ts';
import type { Fleet } from '../support/fleet.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await openFleet();
  const redis = new Redis(fleet.redis.url);
  await redis.config('SET', 'maxmemory', '0');
  redis.disconnect();
}, 60_000);
afterAll(() => fleet.close());

const BOTH = ['WORKER_CONCURENCY is no setting and changes nothing; did you mean WORKER_CONCURRENCY?', 'no maxmemory'];

it('a start warns of misspelt names, of a Redis without a limit and of too few files', async () => {
  const own = { WORKER_CONCURENCY: '10', MAX_CONNECTIONS: '1000000' };

  const [api, worker] = [await fleet.startApi(own), await fleet.startWorker(own)];

  for (const sentence of BOTH)
    expect([api.stdout(), worker.stdout()]).toEqual(Array(2).fill(expect.stringContaining(sentence)));
  expect(api.stdout()).toMatch(/may open \d+ files, fewer than MAX_CONNECTIONS \(1000000\)/);
  expect(worker.stdout()).not.toContain('MAX_CONNECTIONS');
}, 60_000);
