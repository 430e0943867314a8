import { afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import type { OnEarlyEnd } from '../../../shared/contracts/settlement.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { chatOf } from '../../support/chat.ts';
import { useApi, useService, useTenantPerTest } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

/** One shard, whose paused queues hold what waits. */
const service = useService({ env: { QUEUE_SHARDS: '1' }, workers: 0 });
const tenant = useTenantPerTest(service);
const api = useApi(service, tenant);
const pausing = (act: 'pause' | 'resume') =>
  Promise.all(['interactive', 'batch'].map((queue) => service.admin('post', `/queues/0:${queue}/${act}`)));
beforeAll(async () => {
  await service.startTenant();
  await pausing('pause');
  await service.startWorker();
});
beforeEach(() => pausing('pause'));
const answers: Promise<unknown>[] = [];
afterEach(async () => {
  await Promise.all(answers.splice(0));
});

const keysOf = () => service.keyspace.shard(0);

/** Sends a request, which waits in the queue, and resolves with its id. */
async function waitingRequest(path = '/chat', more: Record<string, string> = {}): Promise<string> {
  answers.push(api('post', path, chatOf('words of a pupil'), more));
  return waitFor(async () => (await service.redis.zrange(keysOf().open(tenant.tenantId), '0', '0'))[0], 'the request');
}

const rowOf = (id: string) =>
  waitFor(async () => {
    const { status, body } = await service.admin('get', `/requests/${id}`);
    return status === 200 ? (body as Record<string, unknown> & { timeline: Record<string, unknown> }) : undefined;
  }, `${id} in the list`);

const ownFields = () => ({ tenant_id: tenant.tenantId, key_id: tenant.keyId, mode: 'live', tier: 'mobius' });
const failed = (reason: string, error_code = 'model_unavailable') => ({ status: 'failed', error_code, reason });

it('a request that is cancelled while it waits is in the list, with its route and time', async () => {
  const id = await waitingRequest('/chat/stream');
  await api('post', `/chat/${id}/cancel`);

  const row = await rowOf(id);
  const expected = { status: 'cancelled', reason: 'cancelled while it waited', endpoint: 'chat.stream' };
  expect(row).toMatchObject({
    ...ownFields(),
    ...expected,
    error_code: null,
    finish_reason: 'cancelled',
    credits: null,
  });
  const { accepted_at: acceptedAt, finished_at: finishedAt, started_at: startedAt } = row.timeline;
  expect([Math.abs(Number(finishedAt) - Number(acceptedAt)) < 60, startedAt]).toEqual([true, null]);
  expect(JSON.stringify(row)).not.toContain('pupil');
});

it('one that a deletion of its entity cancels while it waits is in the list', async () => {
  answers.push(api('post', '/chat', { ...chatOf('words of a pupil'), entity_id: 'pupil-7' }));
  const { open } = keysOf();
  const id = await waitFor(async () => (await service.redis.zrange(open(tenant.tenantId), '0', '0'))[0], 'the request');
  await api('post', '/compliance/deletions', { scope: 'entity', entity_id: 'pupil-7' });

  const row = await rowOf(id);
  expect(row).toMatchObject({ ...ownFields(), status: 'cancelled', reason: 'cancelled while it waited' });
  expect(JSON.stringify(row)).not.toContain('pupil');
});

it('one that Redis has lost while its caller waits is in the list', async () => {
  const id = await waitingRequest();
  const { record, stream, body, job, prioritized, inflight } = keysOf();
  await service.redis.del(record(id), stream(id), body(id), job('interactive', id));
  await service.redis.zrem(prioritized('interactive'), id);
  await service.redis.zrem(inflight, id);

  expect(await rowOf(id)).toMatchObject({ ...ownFields(), ...failed('lost by Redis'), endpoint: 'chat' });
});

it('one that the sweep ends without its body is in the list, whether it waited or ran', async () => {
  for (const state of ['accepted', 'running']) {
    const id = await waitingRequest();
    const { body, record, inflight, prioritized, job } = keysOf();
    await service.redis.zrem(prioritized('interactive'), id);
    await service.redis.del(body(id), job('interactive', id));
    await service.redis.hset(record(id), 'state', state);
    await service.redis.zadd(inflight, 1, id);

    expect(await rowOf(id)).toMatchObject({ ...ownFields(), ...failed('its body was lost') });
  }
});

it('one whose body cannot be read is in the list', async () => {
  const id = await waitingRequest();
  await service.redis.set(keysOf().body(id), '{');
  await pausing('resume');

  expect(await rowOf(id)).toMatchObject({ ...ownFields(), ...failed('its body cannot be read', 'internal_error') });
});

it('one that Redis lost and may not be accepted again is in the list', async () => {
  const id = await waitingRequest('/chat', { Prefer: 'respond-async' });
  const { record, body, job, prioritized, inflight } = keysOf();
  await service.admin('delete', `/tenants/${tenant.tenantId}/keys/${tenant.keyId}`);
  await service.redis.del(record(id), body(id), job('interactive', id));
  await service.redis.zrem(prioritized('interactive'), id);
  await service.redis.zrem(inflight, id);
  await service.models.requestIntents.updateMany({ _id: id }, { $set: { lookAt: 0 } });

  const expected = { status: 'failed', reason: 'lost by Redis, and not accepted again', endpoint: 'chat' };
  expect(await rowOf(id)).toMatchObject({ ...ownFields(), ...expected });
});

it('one that is taken back after its caller was told 503 is in the list', async () => {
  const id = await waitingRequest();
  const ends: Parameters<OnEarlyEnd>[] = [];
  const store = createAdmissionStore(service.redis, service.keyspace, {
    ...{ queueLimit: 100, requestTimeoutMs: 60_000, retentionMs: 60_000 },
    onEarlyEnd: (...end) => ends.push(end),
  });
  const known = { tenantId: tenant.tenantId, keyId: tenant.keyId };
  const owner = { shard: 0, ...known };
  await store.voidRefused(id, owner, LOST);
  await store.voidRefused(id, owner, LOST);

  const about = { requestId: id, ...known, mode: 'live', endpoint: 'chat', tier: 'mobius' };
  const how = { code: 'model_unavailable', reason: 'taken back before a worker had it' };
  expect(ends).toEqual([[{ ...about, acceptedAt: expect.any(Number) }, how]]);
});

it.each([
  ['expired', { status: 'failed', error_code: 'timeout', reason: 'its batch expired' }],
  ['cancelled', { status: 'cancelled', error_code: null, reason: 'its batch was cancelled' }],
])('a line that waits when its batch is %s is in the list', async (how, expected) => {
  const lines = ['a', 'b'].map((custom_id) => ({ custom_id, body: chatOf('words of a pupil') }));
  const { body } = await api('post', '/batches', { requests: lines });
  const batchId = String(body.id);
  const { prioritized } = keysOf();
  const ids = await waitFor(async () => {
    const waiting = await service.redis.zrange(prioritized('batch'), '0', '-1');
    return waiting.length === lines.length ? waiting : undefined;
  }, 'the lines');

  if (how === 'cancelled') await api('post', `/batches/${batchId}/cancel`);
  else await service.models.batches.updateOne({ _id: batchId }, { $set: { expiresAt: Date.now() - 1 } });

  for (const id of ids) expect(await rowOf(id)).toMatchObject({ ...ownFields(), ...expected, endpoint: 'batch' });
});
