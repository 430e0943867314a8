import { expect, it } from '@jest/globals';

import { chatOf, errorOf, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { holdLead } from '../../support/hold-lead.ts';
import { openStream } from '../../support/stream-client.ts';
import { askToMove, kindsOn, moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';
import { usedOf } from '../../support/use-window.ts';

const TPM = 1_000_000;

const service = useService({ env: { QUEUE_SHARDS: '2' } });

/** A tenant, its shard and the other one. */
async function startPlaced(options: Parameters<typeof service.startTenant>[0] = {}) {
  const tenant = await service.startTenant(options);
  const from = await shardOf(service, tenant.tenantId);
  return { ...tenant, from, to: 1 - from };
}

async function tokensInLedger(tenantId: string): Promise<number> {
  const entries = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
  return entries.reduce((sum, { promptTokens = 0, completionTokens = 0 }) => sum + promptTokens + completionTokens, 0);
}

it('moves answers, limits and balance along with an idle tenant', async () => {
  const { tenantId, keyId, key, from, to } = await startPlaced({
    credits: 1_000,
    tenant: { tenant_rpm: 4 },
    key: { rpm: 10, daily_requests: 100, tpm: TPM },
  });
  const api = apiOf(service, key);
  const complete = await postChat(service.app, key, chatOf('Hi'));
  const streamed = await postStream(service.app, key, chatOf('Hello'));
  await postChat(service.app, key, chatOf('Hi'));

  const moved = await moveWhenIdle(service, tenantId, to);

  expect(moved.status).toBe(200);
  expect(moved.body).toMatchObject({ id: tenantId, shard: to, held: 0 });
  const { requests, tokens } = await usedOf(service.redis, service.keyspace.shard(to).tokenWindow(keyId));
  expect(requests).toBe(3);
  // The tokens in the ledger have come along, not those that the admissions had estimated.
  expect(tokens).toBe(await tokensInLedger(tenantId));
  const found = await api('get', `/chat/${String(complete.body.id)}`);
  expect(found.body).toMatchObject({ status: 'completed', response: complete.body });
  const again = await api('get', `/chat/stream/${streamed.headers['x-request-id']}`);
  expect(again.text).toBe(streamed.body);
  const after = await postChat(service.app, key, chatOf('Hi'));
  expect(after.status).toBe(200);
  // Three chats before it, and every one of them counts.
  expect(after.headers['x-ratelimit-remaining-requests']).toBe('6');
  expect(Number(after.headers['x-ratelimit-remaining-tokens'])).toBeLessThan(TPM - tokens);
  expect(await service.redis.hget(service.keyspace.shard(to).daily(keyId), 'total')).toBe('4');
  expect(await service.redis.exists(service.keyspace.shard(to).record(after.headers['x-request-id'] ?? ''))).toBe(1);
  const beyond = await postChat(service.app, key, chatOf('Hi'));
  expect(errorOf(beyond)).toMatchObject({ code: 'rpm_exceeded', message: expect.stringContaining('tenant_rpm') });
  // The key has five left, but the ceiling is what binds.
  expect(beyond.headers).toMatchObject({
    'x-ratelimit-limit-requests': after.headers['x-ratelimit-limit-requests'],
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': beyond.headers['retry-after'],
  });
  const balance = await waitFor(async () => {
    const { body } = await service.admin('get', `/tenants/${tenantId}`);
    const entries = await service.models.ledger.find({ tenantId }).lean();
    const sum = entries.reduce((total, { amountMicro }) => total + amountMicro, 0);
    return entries.length === 5 && body.held === 0 ? { told: body.balance as number, sum: sum / 1e6 } : undefined;
  }, 'all charges');
  expect(balance.told).toBe(balance.sum);
  expect(await kindsOn(service, from, [tenantId, keyId])).toEqual(['blocked']);
});

it('replays an answer under its Idempotency-Key after a move', async () => {
  const { tenantId, key, to } = await startPlaced();
  const api = apiOf(service, key);
  const send = () => api('post', '/chat', chatOf('Once'), { 'Idempotency-Key': 'once' });
  const first = await send();

  await moveWhenIdle(service, tenantId, to);

  const second = await send();
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect(second.body).toEqual(first.body);
}, 60_000);

it('refuses to move a tenant whose request runs, and says so', async () => {
  const { tenantId, key, from, to } = await startPlaced();
  service.provider.change({ chunks: 300, chunk_ms: 100 });
  const stream = await openStream(service.url, key, chatOf('Hi'));
  await waitFor(() => stream.read.text !== '' || undefined, 'text');
  service.provider.restore();

  const refused = await askToMove(service, tenantId, to);

  expect(refused.status).toBe(409);
  expect(refused.body.error.message).toMatch(/not idle: a request waits or runs\./);
  expect(await shardOf(service, tenantId)).toBe(from);
  expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
  await apiOf(service, key)('post', `/chat/${stream.requestId}/cancel`);
  expect(await stream.ended).toMatchObject({ finishReason: 'cancelled', isDone: true });
  expect((await moveWhenIdle(service, tenantId, to)).status).toBe(200);
});

it('admits nothing on the former shard, whatever an ingress believes', async () => {
  const { tenantId, key, from, to } = await startPlaced();
  await postChat(service.app, key, chatOf('Hi'));
  await moveWhenIdle(service, tenantId, to);
  // What is cached of the tenant is as it was before the move.
  await service.models.tenants.updateOne({ _id: tenantId }, { $set: { shard: from } });
  await service.redis.publish('parley:access', tenantId);

  const chat = await postChat(service.app, key, chatOf('Hi'));
  const looked = await apiOf(service, key)('get', `/chat/${String(chat.body.id)}`);

  expect(chat.status).toBe(200);
  expect(looked.body).toMatchObject({ status: 'completed' });
  const exists = (shard: number) => service.redis.exists(service.keyspace.shard(shard).record(String(chat.body.id)));
  expect([await exists(from), await exists(to)]).toEqual([0, 1]);
});

it('answers 503 with Retry-After while a tenant is moved', async () => {
  const { tenantId, key, from, to } = await startPlaced();
  const flag = service.keyspace.shard(from).blocked(tenantId);
  const move = { from, to, token: 'another', renewedAt: Date.now() };
  await service.models.tenants.updateOne({ _id: tenantId }, { $set: { move } });
  await service.redis.set(flag, 'moving another');

  const chat = await postChat(service.app, key, chatOf('Hi'));
  const usage = await apiOf(service, key)('get', '/usage');
  const second = await askToMove(service, tenantId, to);

  for (const refused of [chat, usage]) {
    expect(refused.status).toBe(503);
    expect(errorOf(refused)).toMatchObject({ code: 'model_unavailable' });
    expect(refused.headers['retry-after']).toBe('2');
  }
  expect(second.status).toBe(409);
});

it('takes a move back of whose process nothing is heard any more, when the tenant is asked for', async () => {
  const { tenantId, key, from, to } = await startPlaced();
  const move = { from, to, token: 'dead', renewedAt: Date.now() - 60_000 };
  await service.models.tenants.updateOne({ _id: tenantId }, { $set: { move } });
  for (const shard of [from, to])
    await service.redis.set(service.keyspace.shard(shard).blocked(tenantId), 'moving dead');

  const answered = await waitFor(async () => {
    const chat = await postChat(service.app, key, chatOf('Hi'));
    return chat.status === 200 ? chat : undefined;
  }, 'an answer');

  expect(answered.status).toBe(200);
  const row = await service.models.tenants.findById(tenantId).lean();
  expect(row).toMatchObject({ shard: from });
  expect(row?.move).toBeUndefined();
});

it('keeps a tenant suspended, and a key revoked, that is moved', async () => {
  const { tenantId, key, keyId, to } = await startPlaced();
  const other = await service.admin('post', `/tenants/${tenantId}/keys`, { name: 'other' });
  await service.admin('delete', `/tenants/${tenantId}/keys/${keyId}`);
  await service.admin('patch', `/tenants/${tenantId}`, { status: 'suspended' });

  await moveWhenIdle(service, tenantId, to);

  const keys = service.keyspace.shard(to);
  expect(await service.redis.get(keys.blocked(tenantId))).toBe('1');
  expect(await service.redis.get(keys.blocked(keyId))).toBe('1');
  expect((await postChat(service.app, String(other.body.value), chatOf('Hi'))).status).toBe(403);
  await service.admin('patch', `/tenants/${tenantId}`, { status: 'active' });
  expect((await postChat(service.app, String(other.body.value), chatOf('Hi'))).status).toBe(200);
  expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(401);
});

it('refuses a shard that there is not', async () => {
  const { tenantId } = await startPlaced();

  const refused = await askToMove(service, tenantId, 7);

  expect(refused.status).toBe(400);
  expect(refused.body.error).toMatchObject({
    param: 'shard',
    message: '`shard` must be one of these: 0, 1. For more, raise QUEUE_SHARDS of the ingresses first.',
  });
});

it('has moves in the audit logs of the operator and of the tenant', async () => {
  const { tenantId, key, from, to } = await startPlaced();

  await moveWhenIdle(service, tenantId, to);

  const { body: operators } = await service.admin('get', '/audit_log?limit=5');
  expect(operators.data).toContainEqual(
    expect.objectContaining({ method: 'POST', path: `/admin/v1/tenants/${tenantId}/move`, status: 200 }),
  );
  const { body: own } = await apiOf(service, key)('get', '/compliance/audit_log');
  expect(own.data).toContainEqual(expect.objectContaining({ action: 'tenant.moved', details: { from, to } }));
});

it('waits for what webhooks are yet to hear: nobody might serve the former shard any more', async () => {
  const { tenantId, key, from, to } = await startPlaced();
  const keys = service.keyspace.shard(from);
  const giveUpLead = await holdLead(service.redis, keys.lease('notices'));
  service.provider.change({ text: 'parley moderation test' });
  await postChat(service.app, key, chatOf('Hi'));
  service.provider.restore();
  expect(await service.redis.xlen(keys.notices)).toBe(1);
  await waitUntil(async () => (await service.redis.hlen(keys.pending(tenantId))) === 0, 'the charge');

  const refused = await askToMove(service, tenantId, to);
  await giveUpLead();

  expect(refused.status).toBe(409);
  expect(refused.body.error.message).toMatch(/not idle: an event is not published\./);
  expect((await moveWhenIdle(service, tenantId, to)).status).toBe(200);
  expect(await service.redis.xlen(keys.notices)).toBe(0);
});
