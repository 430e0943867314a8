import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { openOwnCluster } from '../../support/redis/own-servers.ts';
import type { RedisNode } from '../../support/redis/redis-nodes.ts';
import { slotOf } from '../../../shared/redis/cluster-slots.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { watchReturn } from '../../../shared/redis/redis-return.ts';
import type { RedisReturn } from '../../../shared/redis/redis-return.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { createRequestEraser } from '../../../shared/requests/request-eraser.ts';
import { newId } from '../../../shared/lifecycle/ids.ts';
import { itemsOf, postLines, resultsOf } from '../../support/batch-client.ts';
import { chatOf, postChat, waitUntil } from '../../support/chat.ts';
import { labRequest, principalOf, RATE, REQUEST_TIMEOUT_MS, RETENTION_MS } from '../../support/request-lab.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { answersAll, tenantsByShard } from '../../support/shards.ts';
import type { ShardTenant } from '../../support/shards.ts';
import { uniqueName } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** Three masters, and a shard on each of them. */
const SHARDS = 3;
const SLOTS = 16_384;
const BACK_WITHIN_MS = 15_000;

/** A shard on each master, and on that of the first all that belongs to no tenant: the most that can be lost with one. */
function worstNamespace(): string {
  const masterOf = (key: string) => Math.floor((slotOf(key) * SHARDS) / SLOTS);
  for (;;) {
    const namespace = uniqueName('t');
    const { shard, webhooks, compliance, breakers, administration } = createKeyspace(namespace);
    const keys = [shard(0).tag, webhooks, compliance, breakers.states, administration.endedSession('')];
    const shards = [0, 1, 2].map((number) => masterOf(shard(number).tag));
    if (new Set(keys.map(masterOf)).size === 1 && new Set(shards).size === SHARDS) return namespace;
  }
}

describe('without one master of a Redis Cluster, which nothing replaces', () => {
  const namespace = worstNamespace();
  /** Started after the master was gone. */
  let further: TestService | undefined;
  let outages: RedisReturn;
  /** The shards of each return. */
  const returns: number[][] = [];
  let gone: RedisNode;
  /** The tenant of the master that is gone, and one of another master. */
  let lost: ShardTenant;
  let tenant: ShardTenant;
  let others: ShardTenant[];

  afterAll(async () => {
    outages.stop();
    await further?.close();
  });
  const cluster = useStarted('cluster', () => openOwnCluster({ replicas: 0 }));
  const settings = () => ({ namespace, env: { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS) } });
  const service = useService(settings);
  beforeAll(async () => {
    // One for each shard, in their order.
    [lost, tenant, ...others] = (await tenantsByShard(service, SHARDS)) as [ShardTenant, ShardTenant];
    expect(await answersAll(service, [lost, tenant, ...others])).toBe(true);
    outages = watchReturn(service.redis, service.keyspace);
    outages.onReturn((isBack) => returns.push([0, 1, 2].filter(isBack)));

    gone = await cluster.masterOf(service.keyspace.shard(lost.shard).tag);
    gone.process().kill();
    await gone.process().exited;
  });
  it('the tenants of the others are answered', async () => {
    expect(await answersAll(service, [tenant, ...others])).toBe(true);

    expect((await postChat(service.app, lost.key, chatOf('Hi'))).status).toBe(503);
  });

  it('their batches run, although the queue of webhooks is gone', async () => {
    const api = apiOf(service, tenant.key);
    await api('post', '/webhooks', { url: 'https://example.com/hooks', events: ['batch.completed'] });
    // The second one waits until the end of the first one has been published.
    for (const content of ['Hi', 'Hello']) {
      const { body: batch } = await postLines(service, tenant.key, itemsOf(3, content));
      await waitUntil(
        async () => (await api('get', `/batches/${String(batch.id)}`)).body.status === 'completed',
        'the batch',
      );
      expect(await resultsOf(service, tenant.key, String(batch.id))).toHaveLength(3);
    }
  });

  it('their requests are swept', async () => {
    const { tenantId, keyId, shard } = tenant;
    const keys = service.keyspace.shard(shard);
    const times = { requestTimeoutMs: REQUEST_TIMEOUT_MS, retentionMs: RETENTION_MS };
    const principal = principalOf({ tenantId, keyId, shard });
    const requestId = newId('req');
    const admission = await createAdmissionStore(service.redis, service.keyspace, { queueLimit: 100, ...times }).admit(
      {
        requestId,
        principal,
        endpoint: 'chat.stream',
        queue: 'interactive',
        rates: { promptMicro: RATE, completionMicro: RATE },
        promptTokens: 1,
        maxTokens: 10,
        channel: '',
        tier: 'mobius',
        metadataJson: undefined,
        onDisconnect: 'finish',
        idempotency: undefined,
        retentionMs: RETENTION_MS,
        entityHash: undefined,
      },
      Date.now(),
    );
    await service.redis.set(keys.body(requestId), JSON.stringify(labRequest(requestId, principal, admission).envelope));
    // Its job never came, and the time for that is over.
    await service.redis.zadd(keys.inflight, 'XX', 1, requestId);

    await waitUntil(async () => (await service.redis.hget(keys.record(requestId), 'state')) === 'done', 'the sweep');
  });

  it('their keys can be looked through, and those of the lost shard are not taken for none', async () => {
    const { left } = createRequestEraser(service.redis, service.keyspace);
    async function countOf({ shard, tenantId }: ShardTenant): Promise<number> {
      let count = 0;
      for await (const requestIds of left(shard, tenantId)) count += requestIds.length;
      return count;
    }

    expect(await countOf(tenant)).toBeGreaterThan(0);
    await expect(countOf(lost)).rejects.toThrow();
  });

  it('further processes start, and serve them', async () => {
    further = await startService({ ...settings(), isSetUp: true });

    expect(await answersAll(further, [tenant, ...others])).toBe(true);
    const warnings = further.log.lines.filter(({ message }) => message.includes('does not answer'));
    expect(warnings.map(({ message }) => message)).toContainEqual(expect.stringContaining(`:${gone.port} `));
  });

  it('only its own shards are away, and wait for what it may have lost when it is back', async () => {
    const recent = () => [0, 1, 2].filter((shard) => outages.hasReconnectedRecently(shard));
    expect([recent(), returns]).toEqual([[lost.shard], []]);

    await gone.restart();

    await waitUntil(() => returns.length > 0, 'the return');
    expect([recent(), returns]).toEqual([[lost.shard], [[lost.shard]]]);
    expect(outages.lastAwayMs(lost.shard)).toBeGreaterThan(1_000);
    expect(outages.lastAwayMs(tenant.shard)).toBe(0);
    await waitUntil(async () => await answersAll(service, [lost]), 'an answer', BACK_WITHIN_MS);
  });
});
