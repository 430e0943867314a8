import { expect, it } from '@jest/globals';

import { chatOf, postChat, requestIdOf, waitFor, waitUntil } from '../../support/chat.ts';
import { moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ env: { QUEUE_SHARDS: '2' } });

const callOnce = ({ key }: TestTenant) => postChat(service.app, key, chatOf('Hi')).set('Idempotency-Key', 'once');

/** Two tenants of one shard. */
async function neighbours(retentionSeconds: number | null): Promise<[TestTenant, TestTenant]> {
  const settings = { tenant: { retention_seconds: retentionSeconds } };
  const first = await service.startTenant(settings);
  return waitFor(async () => {
    const second = await service.startTenant(settings);
    const isNeighbour = (await shardOf(service, first.tenantId)) === (await shardOf(service, second.tenantId));
    return isNeighbour ? [first, second] : undefined;
  }, 'a neighbour');
}

/** The claims on a shard that stand for one of some requests. */
async function claimsOf(shard: number, requestIds: readonly string[]): Promise<string[]> {
  const names = await service.redis.keys(service.keyspace.shard(shard).idempotency('*'));
  const values = names.length === 0 ? [] : await service.redis.mget(names);
  return requestIds.filter((id) => values.some((value) => value?.startsWith(id)));
}

it.each<[string, number | null, (tenant: TestTenant, requestId: string) => Promise<unknown>]>([
  ['is let go', null, () => Promise.resolve()],
  ['keeps nothing', 0, () => Promise.resolve()],
  [
    'was put back',
    null,
    async (tenant, requestId) => {
      const keys = service.keyspace.shard(await shardOf(service, tenant.tenantId));
      const names = await service.redis.keys(keys.idempotency('*'));
      const values = await service.redis.mget(names);
      const claim = names.filter((_name, index) => values[index]?.startsWith(requestId));
      await service.redis.del(...claim, keys.record(requestId));
      expect((await callOnce(tenant)).headers['idempotent-replayed']).toBe('true');
    },
  ],
])("moves a tenant's own claims, and no other's, where the request %s", async (_how, retention, between) => {
  const tenants = await neighbours(retention);
  const from = await shardOf(service, tenants[0].tenantId);
  const requestIds: string[] = [];
  for (const tenant of tenants) {
    const requestId = requestIdOf(await callOnce(tenant));
    requestIds.push(requestId);
    const isStored = async () => (await service.models.answers.countDocuments({ _id: requestId })) || undefined;
    if (retention === null) await waitFor(isStored, 'the stored answer');
    await between(tenant, requestId);
  }
  await waitUntil(async () => {
    const { body } = await service.admin('get', '/settlement');
    return body.outbox === 0;
  }, 'the settlement');
  // As when it was let go.
  await service.redis.del(requestIds.map((id) => service.keyspace.shard(from).record(id)));

  expect((await moveWhenIdle(service, tenants[0].tenantId, 1 - from)).status).toBe(200);

  expect(await claimsOf(1 - from, requestIds)).toEqual(requestIds.slice(0, 1));
  expect(await claimsOf(from, requestIds)).toEqual(requestIds.slice(1));
});

it("moves a tenant's lists of tries, and no other's, so that a client's next try joins its request", async () => {
  const tenants = await neighbours(null);
  const from = await shardOf(service, tenants[0].tenantId);
  const tryOnce = ({ key }: TestTenant, count: number) =>
    postChat(service.app, key, chatOf('Hi')).set('X-Stainless-Retry-Count', String(count));
  for (const tenant of tenants) {
    const record = service.keyspace.shard(from).record(requestIdOf(await tryOnce(tenant, 0)));
    const readers = (await service.redis.hkeys(record)).filter((name) => name.startsWith('reader:'));
    // It looks as if it was left before its end.
    await service.redis.hdel(record, ...readers);
  }

  expect((await moveWhenIdle(service, tenants[0].tenantId, 1 - from)).status).toBe(200);

  const again = [await tryOnce(tenants[0], 1), await tryOnce(tenants[1], 1)];
  expect(again.map(({ headers }) => headers['idempotent-replayed'])).toEqual(['true', 'true']);
  expect(await service.redis.keys(service.keyspace.shard(from).retries('*'))).toHaveLength(1);
});
