import { describe, expect, it } from '@jest/globals';

import { createEnqueuer } from '../../../shared/requests/enqueue.ts';
import { createRefund } from '../../../shared/requests/refund.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { createQueueOrderStore } from '../../../shared/requests/body-store.ts';
import { createReconciliationRepository } from '../../../shared/mongo/accounts/reconciliation-repository.ts';
import { createPrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import { createRequestIntents, requestIntentModel } from '../../../shared/mongo/requests/request-intents.ts';
import { createAccountStore } from '../../../shared/redis/stores/account-store.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { chatOf, postChat, requestIdOf, waitFor, waitUntil } from '../../support/chat.ts';
import { moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import type { TestService, TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

const TIMEOUT_MS = 600_000;

function openRefund({ redis, keyspace, mongo, log }: TestService) {
  return createRefund({
    mongo,
    log,
    clock: systemClock,
    giveUpAfterMs: 10_000,
    accountStore: createAccountStore(redis, keyspace),
  });
}

/** What an ingress does that got no answer to an admission, and hears of Redis only when the request has ended. */
describe('a request whose caller was told 503 and that had ended', () => {
  const service = useService();

  async function voidLater({ tenantId, keyId }: TestTenant, requestId: string): Promise<void> {
    const { redis, keyspace, mongo, log } = service;
    const principal = await createPrincipalRepository(mongo).findByKey(tenantId, keyId);
    if (principal === undefined) throw new Error('The key is gone.');
    const common = { clock: systemClock, log, giveUpAfterMs: 10_000 };
    const settings = { queueLimit: 1_000, requestTimeoutMs: TIMEOUT_MS, retentionMs: TIMEOUT_MS };
    const refund = openRefund(service);
    await new Promise<void>((resolve) => {
      const store = createAdmissionStore(redis, keyspace, settings);
      const { voidLater: takeBackOnce } = createEnqueuer({
        ...common,
        queueOrder: createQueueOrderStore(redis, keyspace, TIMEOUT_MS),
        store: {
          voidPermanently: store.voidPermanently,
          async voidRefused(...call) {
            const state = await store.voidRefused(...call);
            if (state !== 'gone') resolve();
            return state;
          },
        },
        refund: (...call) => refund(...call).finally(resolve),
      });
      takeBackOnce(requestId, principal);
    });
  }

  const entriesOf = ({ tenantId }: TestTenant) =>
    service.models.ledger.find({ tenantId }).sort({ createdAt: 1 }).lean();
  const balanceOf = async ({ tenantId }: TestTenant) =>
    Number((await service.admin('get', `/tenants/${tenantId}`)).body.balance);

  it('gets its charge back once, where its tenant keeps nothing', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));

    await voidLater(tenant, requestId);
    await voidLater(tenant, requestId);

    const [, usage, refund, ...more] = await entriesOf(tenant);
    expect(usage).toMatchObject({ type: 'usage', requestId });
    expect(refund).toMatchObject({ type: 'adjustment', amountMicro: 0 - (usage?.amountMicro ?? 0) });
    expect(refund?._id).toMatch(/^txn_[A-Za-z0-9]{24}$/);
    expect(more).toEqual([]);
    await waitUntil(async () => (await balanceOf(tenant)) === 1_000, 'the balance');
  });

  /** As if Redis had lost it, and its worker had put it back. */
  const putBack = (requestId: string) => service.redis.hset(service.keyspace.shard(0).record(requestId), 'gone', '1');

  it('leaves no turn in its entity, into which its caller sends it once more', async () => {
    const tenant = await service.startTenant({ credits: 1_000 });
    const api = apiOf(service, tenant.key);
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi', { entity_id: 'ent-1' })));
    const turns = async () =>
      (await service.models.entities.findOne({ entityId: 'ent-1', tenantId: tenant.tenantId }).lean())?.messages.length;
    expect((await api('get', '/entities/ent-1')).status).toBe(200);
    expect(await turns()).toBe(2);
    await putBack(requestId);

    await voidLater(tenant, requestId);

    expect(await turns()).toBe(0);
    expect((await entriesOf(tenant)).map(({ type }) => type)).toEqual(['grant', 'usage', 'adjustment']);
  });

  it('gets its charge back from the sweep, where its ingress has ended', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));
    const principal = await createPrincipalRepository(service.mongo).findByKey(tenant.tenantId, tenant.keyId);
    if (principal === undefined) throw new Error('The key is gone.');

    await createRequestIntents(service.mongo).keepTakenBack(requestId, principal, systemClock.now());

    const types = async () => (await entriesOf(tenant)).map(({ type }) => type);
    await waitUntil(async () => (await types()).includes('adjustment'), 'the refund', 20_000);
  });

  it('stays noted until its charge is booked and given back, as the worker that sweeps may end before', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));
    const principal = await createPrincipalRepository(service.mongo).findByKey(tenant.tenantId, tenant.keyId);
    if (principal === undefined) throw new Error('The key is gone.');
    const usage = await waitFor(async () => (await entriesOf(tenant))[1], 'the charge');
    await service.models.ledger.deleteOne({ _id: usage._id });
    const intents = requestIntentModel(service.mongo);
    const noted = () => intents.findOne({ tenantId: tenant.tenantId }).lean();

    await createRequestIntents(service.mongo).keepTakenBack(requestId, principal, systemClock.now() - 1);
    await waitUntil(async () => (await noted())?.isGone === true, 'the note', 20_000);
    // By the next leader's round, Redis has forgotten the request.
    await service.redis.del(service.keyspace.shard(0).record(requestId));
    await service.models.ledger.insertMany([usage]);
    await intents.updateOne({ tenantId: tenant.tenantId }, { $set: { lookAt: 0 } });

    await waitUntil(async () => (await noted()) === null, 'the end of the note', 20_000);
    expect((await entriesOf(tenant)).map(({ type }) => type)).toEqual(['grant', 'usage', 'adjustment']);
  });

  it('gets the tokens of its monthly budget back, and the books agree', async () => {
    const settings = { retention_seconds: 0, monthly_token_budget: 10_000 };
    const tenant = await service.startTenant({ credits: 1_000, tenant: settings });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));

    await voidLater(tenant, requestId);
    await voidLater(tenant, requestId);

    const { body } = await apiOf(service, tenant.key)('get', '/billing');
    expect(body.budget).toMatchObject({ used: 0, remaining: 10_000 });
    const books = createReconciliationRepository(service.mongo);
    expect(await books.check(tenant.tenantId, { onDrift: 'report', now: systemClock.now() })).toMatchObject({
      balanceDriftMicro: 0,
      budgetDriftTokens: 0,
      usageDriftTokens: 0,
    });
  });

  it.each(['live', 'test'] as const)(
    'is in no usage, with a %s key, nor after the usage is made anew',
    async (mode) => {
      const tenant = await service.startTenant({ credits: 1_000, key: { mode }, tenant: { retention_seconds: 0 } });
      const api = apiOf(service, tenant.key);
      const send = async () => requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));
      const [refused, charged] = [await send(), await send()];
      await waitUntil(async () => (await entriesOf(tenant)).length === 3, 'both charges');

      await voidLater(tenant, refused);

      const listOf = async <Item>(path: string): Promise<Item[]> =>
        (await api('get', `${path}?mode=${mode}`)).body.data;
      const summed = async () => (await listOf<{ results: object[] }>('/usage')).flatMap(({ results }) => results);
      expect(await summed()).toMatchObject([{ requests: 1 }]);
      expect((await listOf<{ id: string }>('/usage/requests')).map(({ id }) => id)).toEqual([charged]);
      await service.models.usageRollUps.deleteMany({ tenantId: tenant.tenantId });
      const books = createReconciliationRepository(service.mongo);
      const check = () => books.check(tenant.tenantId, { onDrift: 'repair', now: systemClock.now() });
      expect((await check())?.usageDriftTokens).toBeGreaterThan(0);
      expect(await check()).toMatchObject({ balanceDriftMicro: 0, budgetDriftTokens: 0, usageDriftTokens: 0 });
      expect(await summed()).toMatchObject([{ requests: 1 }]);
    },
  );

  it('leaves low credits where the last grant has set them: a refund buys nothing', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));

    await voidLater(tenant, requestId);

    const [grant, , refund] = await entriesOf(tenant);
    expect(refund).toMatchObject({ type: 'adjustment' });
    const account = await service.models.accounts.findById(tenant.tenantId).lean();
    expect(account?.lastTopUp).toEqual({ transactionId: grant?._id, balanceMicro: grant?.amountMicro });
  });

  it('is charged, where its tenant keeps answers and it can be looked up', async () => {
    const tenant = await service.startTenant({ credits: 1_000 });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));

    await voidLater(tenant, requestId);

    const entries = await waitFor(async () => {
      const found = await entriesOf(tenant);
      return found.length > 1 ? found : undefined;
    }, 'the charge');
    expect(entries.map(({ type }) => type)).toEqual(['grant', 'usage']);
  });

  it('is charged, where another call with its Idempotency-Key has read the answer', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    service.provider.change({ first_token_ms: 500 });
    const post = () => postChat(service.app, tenant.key, chatOf('Hi')).set('Idempotency-Key', 'once');
    const [first, second] = await Promise.all([post(), post()]);
    service.provider.restore();
    expect([first.status, second.status]).toEqual([200, 200]);
    const usage = await waitFor(async () => {
      const [, charge] = await entriesOf(tenant);
      return charge;
    }, 'the charge');

    await voidLater(tenant, usage.requestId ?? '');

    expect((await entriesOf(tenant)).map(({ type }) => type)).toEqual(['grant', 'usage']);
  });

  it('leaves its Idempotency-Key, so that the next try runs and is charged', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    const post = () => postChat(service.app, tenant.key, chatOf('Hi')).set('Idempotency-Key', 'once');
    const first = await post();
    expect((await post()).status).toBe(410);

    await voidLater(tenant, requestIdOf(first));

    const second = await post();
    expect([second.status, second.headers['idempotent-replayed']]).toEqual([200, undefined]);
    const types = async () => (await entriesOf(tenant)).map(({ type }) => type);
    await waitUntil(async () => (await types()).length > 3, 'the charge of the second');
    expect(await types()).toEqual(['grant', 'usage', 'adjustment', 'usage']);
  });

  it('is not given back what it was never charged', async () => {
    const tenant = await service.startTenant({ credits: 1_000, tenant: { retention_seconds: 0 } });
    service.provider.change({ fail: 'status', status: 500 });
    const requestId = requestIdOf(await postChat(service.app, tenant.key, chatOf('Hi')));
    service.provider.restore();

    await voidLater(tenant, requestId);

    expect((await entriesOf(tenant)).map(({ type }) => type)).toEqual(['grant']);
  });
});

describe('a refund of a tenant that has been moved since', () => {
  const service = useService({ env: { QUEUE_SHARDS: '2' } });

  it('counts at once where the tenant is', async () => {
    const { redis, keyspace, mongo } = service;
    const { tenantId, keyId, key } = await service.startTenant({ credits: 1_000 });
    const requestId = requestIdOf(await postChat(service.app, key, chatOf('Hi')));
    const principal = await createPrincipalRepository(mongo).findByKey(tenantId, keyId);
    if (principal === undefined) throw new Error('The key is gone.');
    const from = await shardOf(service, tenantId);
    await moveWhenIdle(service, tenantId, 1 - from);

    await openRefund(service)(requestId, principal);

    const accounts = createAccountStore(redis, keyspace);
    expect(await accounts.read(1 - from, tenantId, '202611')).toMatchObject({ ledgerMicro: 1_000_000_000 });
    expect(await accounts.read(from, tenantId, '202611')).toMatchObject({ ledgerMicro: undefined });
  }, 60_000);
});
