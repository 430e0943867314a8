import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { restore, snapshotOf } from '../../support/roll-back.ts';
import type { RunningWorker, TenantOptions, TestTenant } from '../../support/service.ts';
import { setRates } from '../../support/set-rates.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

const KEY = 'order-1';
const ASYNC = ['Prefer', 'respond-async'] as const;

/** docs/spec.md#accepted-requests. No worker runs until a test starts one. */
describe('a request that was accepted before Redis lost its last second', () => {
  let worker: RunningWorker | undefined;
  const service = useService({ workers: 0 });
  afterEach(async () => {
    await worker?.close();
    worker = undefined;
    service.provider.restore();
    service.provider.reset();
  });
  const startWorker = async () => {
    worker = await service.startWorker();
  };

  /** What Redis has at this moment; calling the result takes it back there, as after a power cut. */
  async function remember(): Promise<() => Promise<void>> {
    const { tag } = service.keyspace.shard(0);
    const before = await snapshotOf(service.redis, tag);
    return () => restore(service.redis, tag, before);
  }
  const loseAll = () => restore(service.redis, service.keyspace.shard(0).tag, new Map());

  const get = (tenant: TestTenant, id: string) =>
    request(service.app).get(`/platform/v1/chat/${id}`).auth(tenant.key, { type: 'bearer' });
  const cancel = (tenant: TestTenant, id: string) =>
    request(service.app).post(`/platform/v1/chat/${id}/cancel`).auth(tenant.key, { type: 'bearer' });
  const callsOf = (id: string) => service.provider.request(id)?.calls ?? 0;
  const charges = (tenant: TestTenant) =>
    service.models.ledger.countDocuments({ tenantId: tenant.tenantId, type: 'usage' });
  const intents = (tenant: TestTenant) => service.models.requestIntents.countDocuments({ tenantId: tenant.tenantId });
  const concluded = (tenant: TestTenant) =>
    waitUntil(async () => (await intents(tenant)) === 0, 'the end of the intents', 20_000);
  /** Instead of waiting for the time of the first look. */
  const hasten = () => service.models.requestIntents.updateMany({}, { $set: { lookAt: 0 } });

  const later = async (tenant: TestTenant) =>
    String((await postChat(service.app, tenant.key, chatOf('Later')).set(...ASYNC)).body.id);
  /** A request that was accepted, and what takes Redis back to before that. */
  async function accepted(options?: TenantOptions) {
    const tenant = await service.startTenant(options);
    const rollBack = await remember();
    return { tenant, rollBack, id: await later(tenant) };
  }

  async function answered(tenant: TestTenant, id: string): Promise<request.Response> {
    return waitFor(
      async () => {
        const response = await get(tenant, id);
        if (response.status === 404) throw new Error('An accepted request is unknown.');
        return ['completed', 'failed'].includes(String(response.body.status)) ? response : undefined;
      },
      `the end of ${id}`,
      20_000,
    );
  }

  it('is kept with the largest body that there can be, and every call under its key hears so', async () => {
    const tenant = await service.startTenant({ credits: 10_000_000 });
    // Six bytes of JSON each.
    const messages = Array.from({ length: 100 }, () => ({ role: 'user', content: '\u0001'.repeat(16_000) }));
    const ask = () =>
      postChat(service.app, tenant.key, { messages })
        .set('Idempotency-Key', KEY)
        .set(...ASYNC);

    expect([(await ask()).status, (await ask()).status]).toEqual([202, 202]);

    expect(await intents(tenant)).toBe(1);
  });

  it('ends without being asked for, and is charged once', async () => {
    const tenant = await service.startTenant();
    const rollBack = await remember();
    const accepted = await postChat(service.app, tenant.key, chatOf('Later')).set(...ASYNC);
    const id = String(accepted.body.id);
    await rollBack();
    await hasten();

    await startWorker();
    await waitFor(() => service.models.answers.findById(id).lean(), 'its answer', 20_000);
    const ended = await answered(tenant, id);

    expect([accepted.status, ended.body]).toMatchObject([
      202,
      { status: 'completed', created_at: accepted.body.created_at },
    ]);
    await waitUntil(async () => (await charges(tenant)) === 1, 'the charge');
    expect(callsOf(id)).toBe(1);
  });

  it('holds the budget of the month in which it was accepted, to which its charge counts', async () => {
    const { tenant, rollBack, id } = await accepted();
    await rollBack();
    const row = await service.models.requestIntents.findById(id).lean();
    const envelopeJson = JSON.stringify({ ...JSON.parse(row?.envelopeJson ?? ''), acceptedAt: Date.UTC(2026, 0, 31) });
    await service.models.requestIntents.updateOne({ _id: id }, { $set: { envelopeJson } });

    expect((await get(tenant, id)).body.status).toBe('queued');

    const held = await service.redis.hget(service.keyspace.shard(0).account(tenant.tenantId), 'heldTokens:202601');
    expect(Number(held)).toBeGreaterThan(0);
  });

  it('costs what it cost when it was accepted', async () => {
    const { tenant, rollBack, id } = await accepted({ credits: 10_000 });
    const before = await setRates(service, { prompt: 9, completion: 9 });
    await rollBack();

    await startWorker();
    const { usage } = ((await answered(tenant, id)).body as { response: { usage: { total_tokens: number } } }).response;
    await setRates(service, before);

    const charge = await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'the charge');
    expect(-charge.amountMicro / 1_000_000).toBe(usage.total_tokens);
  });

  it('is there for whoever looks it up at once', async () => {
    const tenant = await service.startTenant();
    const stranger = await service.startTenant();
    const rollBack = await remember();
    const id = await later(tenant);
    await rollBack();

    expect((await get(stranger, id)).status).toBe(404);
    expect((await get(tenant, id)).body).toMatchObject({ id, status: 'queued' });
    await startWorker();
    expect((await answered(tenant, id)).body.status).toBe('completed');
    expect(callsOf(id)).toBe(1);
  });

  it('and runs is looked up at once, and is not started a second time', async () => {
    const tenant = await service.startTenant();
    // Longer than a worker is silent towards Redis.
    service.provider.change({ first_token_ms: 6_000 });
    await startWorker();
    const id = await later(tenant);
    await waitUntil(() => callsOf(id) === 1, 'the call of the provider');
    await loseAll();

    expect((await get(tenant, id)).status).toBe(200);

    expect((await answered(tenant, id)).body.status).toBe('completed');
    await waitUntil(async () => (await charges(tenant)) === 1, 'the charge');
    expect(callsOf(id)).toBe(1);
  });

  it('that Redis knows without its body is run all the same', async () => {
    const tenant = await service.startTenant();
    const id = await later(tenant);
    const keys = service.keyspace.shard(0);
    await service.redis.zrem(keys.prioritized('interactive'), id);
    await service.redis.del(keys.body(id), `${keys.tag}:interactive:${id}`);
    await service.redis.zadd(keys.inflight, 'XX', 1, id);
    await hasten();

    await startWorker();

    expect((await answered(tenant, id)).body.status).toBe('completed');
    expect(callsOf(id)).toBe(1);
  });

  it.each([
    ['asynchronously', postChat, ASYNC],
    ['as a complete answer', postChat, undefined],
    ['as a stream', postStream, undefined],
  ] as const)('is not run a second time when its key is repeated, asked for %s', async (_how, post, prefer) => {
    const tenant = await service.startTenant();
    const body = chatOf('Once only');
    const rollBack = await remember();
    const call = () => {
      const made = post(service.app, tenant.key, body).set('Idempotency-Key', KEY);
      return (prefer === undefined ? made : made.set(...prefer)).then((response) => response);
    };
    const first = call();
    const intent = await waitFor(
      () => service.models.requestIntents.findOne({ tenantId: tenant.tenantId }).lean(),
      'the intent',
    );
    const keys = service.keyspace.shard(0);
    await waitFor(() => service.redis.zscore(keys.prioritized('interactive'), intent._id), 'the job');
    await rollBack();

    const second = call();
    await waitFor(() => service.redis.hget(keys.record(intent._id), 'state'), 'the request once more');
    const other = await postChat(service.app, tenant.key, chatOf('Else')).set('Idempotency-Key', KEY);
    await startWorker();
    const again = await second;
    await answered(tenant, intent._id);

    expect(errorOf(other)).toMatchObject({ code: 'idempotency_mismatch' });
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([prefer === undefined ? 200 : 202, 'true']);
    await first;
    await waitUntil(async () => (await charges(tenant)) === 1, 'the charge');
    expect(callsOf(intent._id)).toBe(1);
    expect(await service.models.ledger.countDocuments({ requestId: intent._id })).toBe(1);
  });

  it('and cannot be paid any more ends with the reason', async () => {
    const { tenant, rollBack, id } = await accepted();
    await rollBack();
    await service.redis.del(service.keyspace.shard(0).account(tenant.tenantId));
    await service.models.accounts.updateOne({ _id: tenant.tenantId }, { $set: { balanceMicro: 0 } });

    const { status, body } = await get(tenant, id);

    expect([status, body.status, body.error.code]).toEqual([200, 'failed', 'insufficient_credits']);
    expect((await get(tenant, id)).status).toBe(200);
    expect(errorOf(await get(tenant, `stream/${id}`))).toMatchObject({ code: 'insufficient_credits' });
    expect((await get(tenant, `stream/${id}?starting_after=1`)).status).toBe(204);
    expect(callsOf(id)).toBe(0);
  });

  it.each([
    ['a minute', 60],
    ['a week', 7 * 86_400],
  ])('and is ended is kept for %s where its tenant wants that, and found by its entity', async (_, seconds) => {
    const tenant = await service.startTenant({ tenant: { retention_seconds: seconds } });
    const rollBack = await remember();
    const asked = chatOf('Later', { entity_id: 'ent_1', metadata: { note: 'theirs' } });
    const id = String((await postChat(service.app, tenant.key, asked).set(...ASYNC)).body.id);
    await rollBack();
    await service.redis.del(service.keyspace.shard(0).account(tenant.tenantId));
    await service.models.accounts.updateOne({ _id: tenant.tenantId }, { $set: { balanceMicro: 0 } });

    expect((await get(tenant, id)).body.status).toBe('failed');

    const row = await service.models.answers.findById(id).lean();
    const keptSeconds = (Number(row?.expiresAt) - Date.now()) / 1_000;
    expect(keptSeconds).toBeLessThanOrEqual(seconds);
    expect(keptSeconds).toBeGreaterThan(seconds - 30);
    expect(row?.entityId).toBe('ent_1');
  });

  it('and was cancelled before is not run', async () => {
    const { tenant, rollBack, id } = await accepted();
    const cancelled = await cancel(tenant, id);
    await rollBack();
    await hasten();

    await startWorker();
    const kept = await postChat(service.app, tenant.key, chatOf('Next')).set(...ASYNC);
    await answered(tenant, String(kept.body.id));
    await concluded(tenant);

    expect(cancelled.body.status).toBe('cancelled');
    expect([callsOf(id), await service.models.ledger.countDocuments({ requestId: id })]).toEqual([0, 0]);
  });

  it('or had ended before leaves no intent behind, nor one that ends as usual', async () => {
    await startWorker();
    const tenant = await service.startTenant();
    const id = await later(tenant);
    await postChat(service.app, tenant.key, chatOf('Now')).set('Idempotency-Key', KEY);
    await answered(tenant, id);
    await waitFor(() => service.models.answers.findById(id).lean(), 'its answer');
    await service.redis.unlink(service.keyspace.shard(0).record(id));
    await hasten();

    await concluded(tenant);

    expect(service.provider.stats().calls).toBe(2);
    expect((await get(tenant, id)).body.status).toBe('completed');
  });

  it('has its answer in MongoDB before its intent goes, where its worker died behind the end', async () => {
    const tenant = await service.startTenant();
    const ask = () =>
      postChat(service.app, tenant.key, chatOf('Later')).set({ Prefer: ASYNC[1], 'Idempotency-Key': KEY });
    const id = String((await ask()).body.id);
    await service.models.requestIntents.updateMany({}, { $set: { lookAt: Date.now() + 60_000 } });
    await startWorker();
    await waitFor(() => service.models.answers.findOneAndDelete({ _id: id }).lean(), 'its answer', 20_000);
    await waitUntil(async () => (await charges(tenant)) === 1, 'the charge');

    await hasten();
    await concluded(tenant);
    await loseAll();

    expect([(await get(tenant, id)).body.status, (await ask()).body.id]).toEqual(['completed', id]);
    expect([callsOf(id), await charges(tenant)]).toEqual([1, 1]);
  });

  it('nor goes the intent of one that was run again for the answer of the run before', async () => {
    const tenant = await service.startTenant();
    const id = await later(tenant);
    await service.models.requestIntents.updateMany({}, { $set: { lookAt: Date.now() + 60_000, replays: 1 } });
    await startWorker();
    const finishedAt = { 'fields.finishedAt': '1', 'fields.status': 'failed' };
    await waitFor(() => service.models.answers.findOneAndUpdate({ _id: id }, finishedAt).lean(), 'its answer', 20_000);

    await hasten();
    await concluded(tenant);
    await loseAll();

    expect((await get(tenant, id)).body.status).toBe('completed');
  });

  it('or all that it has, and was cancelled in line, is found as cancelled', async () => {
    const tenant = await service.startTenant();
    const id = await later(tenant);
    await cancel(tenant, id);

    await concluded(tenant);
    const leftMs = () => service.redis.pttl(service.keyspace.shard(0).record(id));
    await waitUntil(async () => (await leftMs()) <= 3_600_000, 'Redis to keep it no longer than others');
    await loseAll();

    expect((await get(tenant, id)).body.status).toBe('cancelled');
  });
});

describe('a request that was accepted before MongoDB was away for a moment, and Redis loses everything then', () => {
  const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(`durable${String(process.pid)}`)));
  const service = useService(() => ({ env: { MONGODB_URI: mongo.url } }));
  afterEach(() => {
    mongo.set('pass');
    service.provider.restore();
  });

  it.each(['while it runs', 'once it is charged'])(
    'ends %s, and is charged once',
    async (when) => {
      const tenant = await service.startTenant();
      service.provider.change({ first_token_ms: 1_000 });
      const accepted = await postChat(service.app, tenant.key, chatOf('Later')).set(...ASYNC);
      const id = String(accepted.body.id);
      const { record, tag } = service.keyspace.shard(0);
      const stateIs = (state: string) =>
        waitUntil(async () => (await service.redis.hget(record(id), 'state')) === state, state);
      await stateIs('running');
      mongo.set('reset');
      if (when === 'once it is charged') await stateIs('done');
      mongo.set('pass');
      const charges = () => service.models.ledger.countDocuments({ requestId: id }).catch(() => 0);
      if (when === 'once it is charged') await waitUntil(async () => (await charges()) === 1, 'the charge', 20_000);

      await restore(service.redis, tag, new Map());

      const ended = await waitFor(
        async () => {
          const { status, body } = await request(service.app)
            .get(`/platform/v1/chat/${id}`)
            .auth(tenant.key, { type: 'bearer' });
          return status === 200 && ['completed', 'failed'].includes(String(body.status)) ? body : undefined;
        },
        'its end',
        30_000,
      );
      expect(accepted.status).toBe(202);
      expect(ended.status).toBe('completed');
      await waitUntil(async () => (await charges()) === 1, 'the charge', 20_000);
    },
    90_000,
  );
});
