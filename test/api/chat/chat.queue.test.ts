import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createRecordStore } from '../../../shared/requests/record-store.ts';
import { chatOf, parseSse, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import type { RunningWorker, TestTenant } from '../../support/service.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

const ASYNC = ['Prefer', 'respond-async'] as const;

describe('a request that waits', () => {
  const service = useService({ workers: 0, relayTimes: { pingMs: 2_000 } });
  const workers: RunningWorker[] = [];
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.close()));
  });
  const startWorker = async () => workers.push(await service.startWorker());
  const later = async (tenant: TestTenant) =>
    String((await postChat(service.app, tenant.key, chatOf('Later')).set(...ASYNC)).body.id);
  const get = async (tenant: TestTenant, id: string): Promise<Record<string, unknown>> =>
    (await request(service.app).get(`/platform/v1/chat/${id}`).auth(tenant.key, { type: 'bearer' })).body;

  it('has its position among its tenant’s own and an estimate, until a worker has it', async () => {
    const [mine, other] = [await service.startTenant(), await service.startTenant()];
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1) ids.push(await later(mine));
    const others = await later(other);

    const found = await Promise.all(ids.map((id) => get(mine, id)));

    expect(found.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued']);
    expect(found.map(({ queue }) => queue)).toEqual(
      [1, 2, 3].map((position) => ({ position, estimated_wait_seconds: expect.any(Number) })),
    );
    expect((await get(other, others))['queue']).toMatchObject({ position: 1 });

    await request(service.app).post(`/platform/v1/chat/${ids[0]}/cancel`).auth(mine.key, { type: 'bearer' });
    expect(await get(mine, ids[0] ?? '')).toMatchObject({ status: 'cancelled', queue: null });
    expect((await get(mine, ids[2] ?? ''))['queue']).toMatchObject({ position: 2 });

    await startWorker();
    await waitUntil(async () => (await get(mine, ids[2] ?? ''))['status'] === 'completed', 'its end');
    expect((await get(mine, ids[2] ?? ''))['queue']).toBeNull();
  });

  it('says so in its stream within two seconds and with its pings, in comments that are no events', async () => {
    const tenant = await service.startTenant();
    await later(tenant);
    const stream = await openStream(service.url, tenant.key, chatOf('Tell me'));
    await stream.until(': queue position=2 wait=');
    expect(stream.status).toBe(200);
    // Before the first ping, which comes after two seconds.
    expect(stream.text()).toMatch(/^: queue position=2 wait=\d+\n$/);
    await stream.until(': ping\n: queue position=2 wait=');

    await startWorker();
    const text = await stream.end();

    const events = parseSse(text);
    expect(events.map(({ id }) => id)).toEqual(events.map((_event, index) => index + 1));
    expect(events.at(-1)?.chunk).toBeUndefined();
    // Again, and byte for byte the same but for the comments.
    const id = stream.requestId;
    const again = await fetch(`${service.url}/platform/v1/chat/stream/${id}`, {
      headers: { Authorization: `Bearer ${tenant.key}` },
    });
    expect(await again.text()).toBe(text.replaceAll(/^:.*\n/gm, ''));
  });
});

describe('the estimate', () => {
  const service = useService({ env: { WORKER_CONCURRENCY: '4' } });
  beforeAll(() => {
    service.provider.change({ chunks: 1, first_token_ms: 60, chunk_ms: 1 });
  });

  // E26 of the fault suite measures it. Here it has to be of the right size on any machine, whose speed may change while
  // a request waits: within a factor of two either way, for half of them.
  it('is near what happens for most of 100 requests under steady load', async () => {
    const [tenant, light] = [await service.startTenant(), await service.startTenant()];
    const records = createRecordStore(service.redis, service.keyspace, { retentionMs: 60_000 });
    const { record } = service.keyspace.shard(0);
    /** By how many doublings or halvings each estimate misses. */
    const doublings: number[] = [];
    let sent = 0;
    const startOf = (id: string) =>
      waitFor(async () => (await service.redis.hget(record(id), 'startedAt')) ?? undefined, 'a worker', 60_000);

    async function client(): Promise<void> {
      while (sent < 160) {
        const index = (sent += 1);
        const id = String((await postChat(service.app, tenant.key, chatOf('Later')).set(...ASYNC)).body.id);
        const at = Date.now();
        const place = await records.place({ shard: 0, tenantId: tenant.tenantId }, id);
        const waited = Number(await startOf(id)) - at;
        // The first ones came before anything was known.
        if (index > 60 && place !== undefined && waited > 0) doublings.push(Math.abs(Math.log2(place.waitMs / waited)));
      }
    }
    async function neighbour(): Promise<void> {
      while (sent < 160) await postChat(service.app, light.key, chatOf('Now and then'));
    }
    await Promise.all([...Array.from({ length: 40 }, client), neighbour()]);

    expect(doublings.length).toBeGreaterThanOrEqual(60);
    expect(doublings.sort((one, other) => one - other)[Math.floor(doublings.length / 2)]).toBeLessThanOrEqual(1);
  }, 300_000);
});
