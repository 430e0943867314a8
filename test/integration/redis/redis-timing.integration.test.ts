import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { createStreamReader } from '../../../shared/requests/answers.ts';
import { inTime } from '../../../shared/redis/time-limits.ts';
import { openRequestLab, principalOf, SHARD } from '../../support/request-lab.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { openTestRedis, redisUrl } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

/** The limit is 1.5 s; without it these calls take about as long again. */
const LIMIT_MS = 2_200;

describe('a call that a caller waits for, with a Redis that hangs', () => {
  const lab = useStarted('lab', openRequestLab);
  const proxy = useStarted('proxy', () => openTcpProxy(redisUrl()));
  const client = useStarted('client', () => openTestRedis('producer', proxy.url));
  beforeAll(() => {
    client.on('error', () => undefined);
  });
  afterEach(() => {
    proxy.set('pass');
  });

  const principal = principalOf({ shard: SHARD });
  const stores = () => ({
    records: createRecordStore(client, lab.keyspace, { retentionMs: 1_000 }),
    streams: createStreamReader(client, lab.keyspace, inTime),
    accounts: createAccountStore(client, lab.keyspace, inTime),
  });
  const book = { balanceMicro: 1, version: 1, tokensByMonth: {} };

  it.each<[string, (all: ReturnType<typeof stores>) => Promise<unknown>]>([
    ['finding a record', ({ records }) => records.find(principal, 'req_1')],
    ['attaching to a record', ({ records }) => records.attach(principal, 'req_1', 'channel')],
    ['cancelling', ({ records }) => records.cancel(principal, 'req_1')],
    ['reading a stream', ({ streams }) => streams.readFrom(SHARD, 'req_1', 1)],
    ['publishing a book', ({ accounts }) => accounts.publishBalance(SHARD, 'ten_1', book)],
    ['reading an account', ({ accounts }) => accounts.read(SHARD, 'ten_1', '202611')],
  ])('%s ends in time, although it waits behind others that get no answer', async (_name, call) => {
    const all = stores();
    proxy.set('silent');
    const before = client.get('anything').catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));

    const start = performance.now();
    await expect(call(all)).rejects.toThrow('Command timed out');

    expect(performance.now() - start).toBeLessThan(LIMIT_MS);
    await before;
  });
});
