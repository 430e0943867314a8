import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { createLastDrift } from '../../../shared/redis/stores/account-store.ts';
import { errorOf, startAdmin } from '../../support/admin.ts';
import type { TestAdmin } from '../../support/admin.ts';
import { recordOf } from '../../support/ledger-lab.ts';

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.close());
afterEach(() => {
  expect(admin.errors).toEqual([]);
});

const settlement = async () => (await admin.call('get', '/admin/v1/settlement')).body as object;
const putDeadLetter = (shard: number, text: string) =>
  admin.redis.xadd(admin.keyspace.shard(shard).deadLetters, '*', 's', text);

describe('the figures of settlement', () => {
  it('are those of all shards, and of the last reconciliation', async () => {
    expect(await settlement()).toEqual({
      object: 'settlement',
      outbox: 0,
      dead_letters: 0,
      lag_seconds: 0,
      drift: null,
    });
    const text = JSON.stringify(recordOf('ten_1'));
    const [seconds] = await admin.redis.time();
    for (const shard of [0, 1])
      await admin.redis.xadd(admin.keyspace.shard(shard).outbox, `${String(Number(seconds) - 90)}000-0`, 's', text);
    await putDeadLetter(1, text);
    const drift = createLastDrift(admin.redis, admin.keyspace);
    await drift.keep(0, { balance: 0, usageTokens: 2 });
    await drift.keep(1, { balance: 3, usageTokens: 0 });

    const { lag_seconds: lag, ...figures } = (await settlement()) as { lag_seconds: number };

    expect(figures).toEqual({ object: 'settlement', outbox: 2, dead_letters: 1, drift: 5 });
    expect(lag).toBeGreaterThanOrEqual(90);
    expect(lag).toBeLessThan(120);
  });

  it('say how many dead letters go back to the outbox', async () => {
    for (const shard of [0, 1])
      await admin.redis.del(admin.keyspace.shard(shard).deadLetters, admin.keyspace.shard(shard).outbox);
    await putDeadLetter(0, 'no record');
    await putDeadLetter(1, JSON.stringify(recordOf('ten_1')));

    const { status, body } = await admin.call('post', '/admin/v1/settlement/requeue');

    expect([status, body]).toEqual([200, { object: 'settlement.requeue', requeued: 1, dead_letters: 1 }]);
    expect(await settlement()).toMatchObject({ outbox: 1, dead_letters: 1, lag_seconds: 0 });
  });

  it('have no other methods', async () => {
    for (const [method, path, allowed] of [
      ['post', 'settlement', 'GET, HEAD'],
      ['get', 'settlement/requeue', 'POST'],
    ] as const) {
      const response = await admin.call(method, `/admin/v1/${path}`);
      expect([response.status, response.headers['allow']]).toEqual([405, allowed]);
      expect(errorOf(response)).toMatchObject({ code: 'method_not_allowed' });
    }
  });
});
