import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createCancelChannel } from '../../shared/infra/redis/requests/request-channels.ts';
import type { RedisClient } from '../../shared/infra/redis/connection.ts';
import { createRecordStore } from '../../shared/infra/redis/requests/record-store.ts';
import { createRequestPresence } from '../../shared/infra/redis/requests/request-presence.ts';
import { unlimited } from '../../shared/infra/redis/timing.ts';
import { createLease, createOpenLeases } from '../../workers/pipeline/lease/lease.ts';
import type { OpenLeases } from '../../workers/pipeline/lease/lease.ts';
import { Stopped } from '../../workers/pipeline/stage.ts';
import type { Lease } from '../../workers/pipeline/stage.ts';
import { createRecordingLog } from '../support/recording-log.ts';
import { RETENTION_MS, SHARD, openRequestLab } from '../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../support/request-lab.ts';
import { openTestRedis } from '../support/stores.ts';

let lab: RequestLab;
let subscriber: RedisClient;
let leases: OpenLeases;
beforeAll(async () => {
  lab = await openRequestLab();
  subscriber = await openTestRedis('subscriber');
  leases = createOpenLeases((options) => createLease(lab.requests, createRecordingLog(), options));
  const channel = createCancelChannel(subscriber, lab.keyspace, (requestId) => void leases.check(requestId));
  await channel.subscribe(SHARD);
});
afterAll(async () => {
  subscriber.disconnect();
  await lab.close();
});

async function run(): Promise<{ request: LabRequest; lease: Lease }> {
  const request = await lab.admit();
  await lab.run(request, 1);
  const lease = leases.open({
    ref: request.ref(1),
    rates: { promptMicro: 1, completionMicro: 1 },
    maxTokens: 100,
    remainingMs: 60_000,
    held: { micro: 0, tokens: Infinity },
  });
  return { request, lease };
}

it('stops a running request at once, long before its next renewal, and no other', async () => {
  const [cancelled, other] = [await run(), await run()];
  const stopped = new Promise((resolve) => {
    cancelled.lease.signal.addEventListener('abort', () => {
      resolve(cancelled.lease.signal.reason);
    });
  });
  const startedAt = performance.now();

  const records = createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  await records.cancel(cancelled.request.principal, cancelled.request.requestId);

  expect(await stopped).toMatchObject({ name: 'Stopped', reason: 'cancelled' });
  // A renewal comes every 3 s.
  expect(performance.now() - startedAt).toBeLessThan(2_500);
  expect(other.lease.signal.aborted).toBe(false);
  for (const { lease } of [cancelled, other]) lease.release();
});

describe('a request that is cancelled in line', () => {
  const records = () => createRecordStore(lab.redis, lab.keyspace, { retentionMs: RETENTION_MS });
  const livesMs = (key: string) => lab.redis.pttl(key);

  it.each([
    ['its tenant’s shorter time', { retentionMs: 5_000 }, 5_000],
    ['the time of an answer that is kept for longer', { retentionMs: 86_400_000 }, 86_400_000],
    ['the service’s own time', {}, RETENTION_MS],
  ])('is kept for %s', async (_, options, keptMs) => {
    const { requestId, principal } = await lab.admit(options);

    await records().cancel(principal, requestId);

    for (const key of [lab.keys.record(requestId), lab.keys.stream(requestId)]) {
      expect(await livesMs(key)).toBeLessThanOrEqual(keptMs);
      expect(await livesMs(key)).toBeGreaterThan(keptMs - 5_000);
    }
  });

  it('is not taken for lost once its short time is over', async () => {
    const { requestId, principal } = await lab.admit({ retentionMs: 5_000 });
    await records().cancel(principal, requestId);
    await lab.redis.del(lab.keys.record(requestId));

    const presence = createRequestPresence(lab.redis, lab.keyspace, unlimited);

    expect(await presence.look(SHARD, [requestId])).toEqual(['ended']);
  });

  it('leaves nothing but a tombstone where its tenant keeps nothing', async () => {
    const { requestId, principal } = await lab.admit({ retentionMs: 0 });

    await records().cancel({ ...principal, retentionSeconds: 0 }, requestId);

    expect(await lab.redis.hmget(lab.keys.record(requestId), 'gone', 'metadata')).toEqual(['1', null]);
    expect(await lab.redis.exists(lab.keys.body(requestId))).toBe(0);
    // For a reader who is there; its ingress deletes it sooner.
    expect(await livesMs(lab.keys.stream(requestId))).toBeLessThanOrEqual(60_000);
  });
});

it('asks nothing of a lease that was released, and keeps that of a later attempt', async () => {
  const { request, lease } = await run();
  const later = leases.open({
    ref: request.ref(2),
    rates: { promptMicro: 1, completionMicro: 1 },
    maxTokens: 100,
    remainingMs: 60_000,
    held: { micro: 0, tokens: Infinity },
  });
  lease.release();

  await leases.check(request.requestId);

  expect(lease.signal.aborted).toBe(false);
  // Nobody has claimed the second attempt, so Redis refuses it: it was asked.
  expect(later.signal.reason).toEqual(new Stopped('superseded'));
  later.release();
  await leases.check(request.requestId);
});

it('goes on without text when it is asked whether it is still wanted, although its prompt is more than it holds', async () => {
  const { request, lease } = await run();
  await lab.redis.hset(lab.keys.account(request.ref(1).tenantId), 'book', 0);
  lease.need({ promptTokens: 1_000_000, completionTokens: 0 });
  await leases.check(request.requestId);
  expect(lease.signal.aborted).toBe(false);
  lease.release();
});
