import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { createBatchWorkRepository } from '../../../shared/mongo/batches/batch-work-repository.ts';
import { textOf, createBatchLab } from '../../support/batch-lab.ts';
import type { BatchLab } from '../../support/batch-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';
import { usedOf } from '../../support/use-window.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';
let lab: BatchLab;
const service = useService({ env: { WEBHOOK_ALLOW_PRIVATE: 'true' } });
beforeAll(() => {
  lab = createBatchLab(service);
});

const contents = (count: number) => Array.from({ length: count }, (_, index) => `Question ${index}`);

/** What was booked for requests, when as many entries are there as there should be. */
const charges = ({ tenantId }: TestTenant, count: number) =>
  waitFor(async () => {
    const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    return rows.length >= count ? rows : undefined;
  }, 'the charges');

const completed = (batchId: string) => lab.until(batchId, 'to end', ({ status }) => status === 'completed', 60_000);

describe('a batch', () => {
  it('runs every line once and charges each once', async () => {
    const tenant = await service.startTenant();
    const batchId = await lab.submit(tenant, contents(150));
    const row = await completed(batchId);
    expect(row).toMatchObject({ total: 150, completed: 150, failed: 0, waitingFor: null });
    const lines = await lab.lines(batchId);
    const booked = await charges(tenant, 150);
    expect(booked.map(({ requestId }) => requestId).sort()).toEqual(lines.map(({ requestId }) => requestId).sort());
    expect(new Set(booked.map(({ endpoint }) => endpoint))).toEqual(new Set(['batch']));
    for (const line of lines) {
      expect(line.requestJson).toBeUndefined();
      expect(textOf(line)).not.toBe('');
    }
  }, 90_000);

  it('takes nothing of the limit on requests a minute', async () => {
    const tenant = await service.startTenant({ tenant: { rpm: 2, chat_rpm: 2 } });
    await completed(await lab.submit(tenant, contents(20)));
    expect(await service.redis.exists(service.keyspace.shard(0).keyRpm(tenant.keyId))).toBe(0);
  });

  it('a batch remembers the turns of an entity', async () => {
    const tenant = await service.startTenant();
    await completed(await lab.submit(tenant, ['What is a batch?'], { entityId: 'pupil-1' }));
    const entity = await service.models.entities.findOne({ tenantId: tenant.tenantId, entityId: 'pupil-1' }).lean();
    expect(entity?.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  it('gives a line that is refused by moderation its error, and the others their answers', async () => {
    const tenant = await service.startTenant();
    const batchId = await lab.submit(tenant, ['Hello', 'I will kill you tonight', 'Good bye']);
    expect(await completed(batchId)).toMatchObject({ completed: 2, failed: 1 });
    const lines = await lab.lines(batchId);
    expect(lines.map(({ state }) => state)).toEqual(['completed', 'failed', 'completed']);
    expect(lines[1]?.entries?.[0]?.payload).toContain('content_policy_violation');
  });

  it('is told to a webhook once when it has ended', async () => {
    const tenant = await service.startTenant();
    const made = await request(service.app)
      .post('/platform/v1/webhooks')
      .auth(tenant.key, { type: 'bearer' })
      .send({ url: 'http://127.0.0.1:9/', events: ['batch.completed'] });
    expect(made.status).toBe(201);
    const batchId = await lab.submit(tenant, contents(3));
    await lab.until(batchId, 'to be told', (row) => row.status === 'completed' && row.openShard === undefined);
    const events = await service.models.webhookEvents.find({ tenantId: tenant.tenantId }).lean();
    expect(events.map(({ bodyJson }) => (JSON.parse(bodyJson) as { data: object }).data)).toEqual([
      { batch_id: batchId, status: 'completed', total: 3, succeeded: 3, failed: 0 },
    ]);
  });
});

describe('a batch that cannot go on', () => {
  it('waits for credits and goes on when there are some', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const batchId = await lab.submit(tenant, contents(5));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: 100_000, reason: 'test' });
    expect(await completed(batchId)).toMatchObject({ completed: 5, failed: 0 });
  });

  // A line that is sent counts more than it is going to take: what it can take at most where nothing is known of the
  // batch, then 1.25 times its mean and more. So the window never has more than 80 %, however many run at once.
  it.each([
    ['', undefined],
    [' although the key has had short answers only', '1'],
  ])('waits for tokens a minute and takes at most 80 %% of them%s', async (_, meanCompletion) => {
    service.provider.change({ first_token_ms: 300 });
    const tenant = await service.startTenant({ tenant: { tpm: 2_000 } });
    const keys = service.keyspace.shard(0);
    if (meanCompletion !== undefined) await service.redis.set(keys.meanCompletion(tenant.keyId), meanCompletion);
    const batchId = await lab.submit(tenant, contents(200));
    await lab.until(batchId, 'to wait', ({ waitingFor, completed: ran }) => waitingFor === 'tpm' && ran > 0);
    // Caution leaves little of it: what ended lines have taken fills it but for what one more would count.
    await waitUntil(async () => {
      const { tokens } = await usedOf(service.redis, keys.tokenWindow(tenant.keyId));
      expect(tokens).toBeLessThanOrEqual(1_600);
      return (await service.redis.zcard(keys.inflight)) === 0 && tokens > 1_600 - 200;
    }, 'the lines to fill it');
    await lab.cancel(batchId);
    await lab.until(batchId, 'to be cancelled', ({ status }) => status === 'cancelled');
    service.provider.change({ first_token_ms: 0 });
  });

  it('fails the lines for which the budget of the month has nothing left', async () => {
    const tenant = await service.startTenant({ tenant: { monthly_token_budget: 60 } });
    const batchId = await lab.submit(tenant, contents(40));
    const row = await completed(batchId);
    expect(row.failed).toBeGreaterThan(0);
    expect(row.completed + row.failed).toBe(40);
    const refused = (await lab.lines(batchId)).filter(({ state }) => state === 'failed');
    expect(new Set(refused.map(({ error }) => error?.code))).toEqual(new Set(['budget_exceeded']));
  });

  it('fails what is left when its key is revoked', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const batchId = await lab.submit(tenant, contents(5));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    await service.admin('delete', `/tenants/${tenant.tenantId}/keys/${tenant.keyId}`);
    expect(await completed(batchId)).toMatchObject({ completed: 0, failed: 5 });
    const lines = await lab.lines(batchId);
    expect(new Set(lines.map(({ error }) => error?.code))).toEqual(new Set(['invalid_api_key']));
  });

  it('goes on when its key is changed', async () => {
    const tenant = await service.startTenant({ credits: 0, key: { scopes: ['*'] } });
    const batchId = await lab.submit(tenant, contents(5));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    expect((await apiOf(service, tenant.key)('post', `/keys/${tenant.keyId}/rotate`, {})).status).toBe(200);
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: 10_000, reason: 'test' });
    expect(await completed(batchId)).toMatchObject({ completed: 5, failed: 0 });
  });

  it('fails what is left when its key has lost the scope for it', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const batchId = await lab.submit(tenant, contents(5));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    await service.models.keys.updateOne({ _id: tenant.keyId }, { $set: { scopes: ['chat.stream', 'usage'] } });
    expect(await completed(batchId)).toMatchObject({ completed: 0, failed: 5 });
    const lines = await lab.lines(batchId);
    expect(new Set(lines.map(({ error }) => error?.code))).toEqual(new Set(['endpoint_not_allowed']));
  });

  it('has its requests read when they are sent, so that those that wait take no memory', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const { tenantId } = tenant;
    const batchId = await lab.submit(tenant, contents(2));
    const work = createBatchWorkRepository(service.mongo);
    const [first, second] = await lab.lines(batchId);
    const known = (line = first) => ({ _id: line?._id, index: line?.index, requestId: line?.requestId });
    expect(await work.waiting(tenantId, batchId, -1, 10)).toEqual([known(first), known(second)]);
    const { requestJson, customId } = second ?? {};
    expect(await work.toSend(tenantId, batchId, [1])).toEqual([{ ...known(second), requestJson, customId }]);
    await lab.cancel(batchId);
    await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');
  });

  it('a batch that cannot go on waits while its tenant is suspended', async () => {
    const tenant = await service.startTenant();
    await service.admin('patch', `/tenants/${tenant.tenantId}`, { status: 'suspended' });
    const batchId = await lab.submit(tenant, contents(2));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'account');
    await service.admin('patch', `/tenants/${tenant.tenantId}`, { status: 'active' });
    expect(await completed(batchId)).toMatchObject({ completed: 2 });
  });
});

describe('a batch whose tenant is suspended', () => {
  it('waits, too, where Redis has lost that it is', async () => {
    const tenant = await service.startTenant();
    await service.admin('patch', `/tenants/${tenant.tenantId}`, { status: 'suspended' });
    const row = await service.models.tenants.findById(tenant.tenantId).lean();
    await service.redis.del(service.keyspace.shard(row?.shard ?? 0).blocked(tenant.tenantId));
    const batchId = await lab.submit(tenant, contents(2));
    const { completed: done } = await lab.until(
      batchId,
      'to wait',
      ({ waitingFor, completed: ended }) => waitingFor === 'account' || ended > 0,
    );
    expect(done).toBe(0);
    await service.admin('patch', `/tenants/${tenant.tenantId}`, { status: 'active' });
    expect(await completed(batchId)).toMatchObject({ completed: 2 });
  });
});

describe('the end of a batch before its lines', () => {
  it('lets what runs finish and ends the rest when it is cancelled', async () => {
    service.provider.change({ first_token_ms: 300 });
    const tenant = await service.startTenant();
    const batchId = await lab.submit(tenant, contents(500));
    await lab.until(batchId, 'to run', ({ startedAt }) => startedAt !== undefined);
    await lab.cancel(batchId);
    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');
    expect(row.completed + row.failed).toBe(500);
    const lines = await lab.lines(batchId);
    const ended = lines.filter(({ error }) => error?.code === 'conflict');
    expect(ended.length).toBe(row.failed);
    expect(row.completed).toBeLessThan(500);
    await charges(tenant, row.completed);
    expect(await service.models.ledger.countDocuments({ tenantId: tenant.tenantId, type: 'usage' })).toBe(
      row.completed,
    );
  });

  it('comes although Redis loses a request that was let finish', async () => {
    service.provider.change({ first_token_ms: 2_000 });
    const tenant = await service.startTenant();
    const batchId = await lab.submit(tenant, contents(500));
    await lab.until(batchId, 'to run', ({ startedAt }) => startedAt !== undefined);
    await lab.cancel(batchId);
    const isOver = { batchId, state: 'failed' } as const;
    await waitUntil(async () => (await service.models.batchLines.countDocuments(isOver)) > 0, 'the cancel');
    const left = (await lab.lines(batchId)).filter(({ state }) => state === 'waiting');
    expect(left.length).toBeGreaterThan(0);
    await service.redis.del(service.keyspace.shard(0).record(left[0]?.requestId ?? ''));
    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');
    expect(row.completed + row.failed).toBe(500);
    service.provider.change({ first_token_ms: 0 });
  });

  it('the end of a batch before its lines comes when its time is over', async () => {
    const tenant = await service.startTenant({ credits: 0 });
    const batchId = await lab.submit(tenant, contents(3));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'credits');
    await service.models.batches.updateOne({ _id: batchId }, { $set: { expiresAt: Date.now() - 1 } });
    expect(await lab.until(batchId, 'to expire', ({ status }) => status === 'expired')).toMatchObject({ failed: 3 });
    expect(new Set((await lab.lines(batchId)).map(({ error }) => error?.code))).toEqual(new Set(['timeout']));
  });
});

describe('batches of several tenants', () => {
  it('take turns, so that a small one need not wait for a large one', async () => {
    service.provider.change({ first_token_ms: 100 });
    const [large, small] = await Promise.all([service.startTenant(), service.startTenant()]);
    const largeId = await lab.submit(large, contents(1_000));
    await lab.until(largeId, 'to run', ({ startedAt }) => startedAt !== undefined);
    const smallId = await lab.submit(small, contents(10));
    await completed(smallId);
    const { completed: ran } = await lab.row(largeId);
    expect(ran).toBeLessThan(750);
    await lab.cancel(largeId);
    await lab.until(largeId, 'to end', ({ status }) => status === 'cancelled');
  });
});
