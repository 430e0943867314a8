import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { parseEnvelope } from '../../../shared/contracts/jobs.ts';
import { createFailedIntents } from '../../../shared/mongo/requests/failed-intents.ts';
import { createPrincipalRepository } from '../../../shared/mongo/tenants/principal-repository.ts';
import { createAdmissionStore } from '../../../shared/requests/admission-store.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { replayLab } from '../../support/replay-lab.ts';
import type { TestTenant } from '../../support/service.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

const RATES = { promptMicro: 1_000_000, completionMicro: 1_000_000 };

/** Each test does by hand what an ingress does, up to the moment at which it is killed. */
describe('a replay whose ingress is killed', () => {
  const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(`replay${String(process.pid)}`)));

  const service = useService(() => ({ env: { MONGODB_URI: mongo.url } }));
  const lab = replayLab(service);
  beforeAll(() => service.setProvider({ max_retries: 0 }));
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
    mongo.set('pass');
  });

  const intentOf = (id: string) => service.models.requestIntents.findById(id).lean();
  const hasten = (id: string) =>
    service.models.requestIntents.updateOne({ _id: id, failedAt: null }, { $set: { lookAt: 0 } });
  const untilFailed = (id: string) =>
    waitFor(
      async () => ((await lab.replay({ request_ids: [id], dry_run: true })).matched === 1 ? true : undefined),
      'it to be replayable again',
      20_000,
    );

  /** The first step: the intent is open. */
  async function take(id: string): Promise<string> {
    await untilFailed(id);
    const failed = createFailedIntents(service.mongo);
    const [found] = await failed.list({ requestIds: [id] }, { after: undefined, limit: 1 }, Date.now());
    if (found === undefined) throw new Error('It has not failed.');
    const again = JSON.stringify({ ...parseEnvelope(found.envelopeJson), replayedAt: found.failedAt + 1 });
    expect(await failed.take(found, again, Date.now())).toBe(true);
    return again;
  }

  /** The second one: Redis has forgotten that it has ended. */
  const reopen = (id: string) => {
    const keys = service.keyspace.shard(0);
    return service.redis.unlink(keys.record(id), keys.stream(id), keys.answer(id));
  };

  /** The third one: it is admitted, and not in line. */
  async function admit(id: string, envelopeJson: string): Promise<void> {
    const { tenantId, keyId, endpoint, tier } = parseEnvelope(envelopeJson);
    const principal = await createPrincipalRepository(service.mongo).findByKey(tenantId, keyId);
    if (principal === undefined) throw new Error('The key is gone.');
    const settings = { queueLimit: 1_000, requestTimeoutMs: 600_000, retentionMs: 60_000 };
    const { verdict } = await createAdmissionStore(service.redis, service.keyspace, settings).admit(
      {
        ...{ requestId: id, principal, endpoint, tier, queue: 'interactive', rates: RATES, channel: '' },
        ...{ promptTokens: 10, maxTokens: 100, metadataJson: undefined, entityHash: undefined },
        ...{ onDisconnect: 'finish', idempotency: undefined },
      },
      Date.now(),
    );
    expect(verdict).toBe('admitted');
  }

  async function expectOnce(tenant: TestTenant, id: string): Promise<void> {
    await lab.ended(tenant, id);
    await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'its charge');
    await hasten(id);
    await waitUntil(async () => (await intentOf(id)) === null, 'the end of its intent', 20_000);
    expect(await service.models.ledger.countDocuments({ requestId: id })).toBe(1);
    expect(service.provider.request(id)?.calls).toBe(1);
  }

  it.each([
    ['before Redis hears of it', () => Promise.resolve()],
    ['when Redis has forgotten its end', reopen],
  ])(
    '%s leaves it failed, and it can be replayed',
    async (_when, reach) => {
      const tenant = await service.startTenant();
      const { id } = await lab.failed(tenant);
      await take(id);
      await reach(id);
      await hasten(id);

      await untilFailed(id);

      expect((await lab.get(tenant, id)).body.status).toBe('failed');
      expect(await lab.reasonOf(id)).toBeNull();
      await expectOnce(tenant, id);
    },
    60_000,
  );

  it('before it is in line has it run all the same', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    const envelopeJson = await take(id);
    await reopen(id);
    await admit(id, envelopeJson);
    expect((await lab.get(tenant, id)).body.status).toBe('queued');

    await hasten(id);

    await expectOnce(tenant, id);
  }, 60_000);

  it('and whose intent is not due when its admission is overdue has it run all the same', async () => {
    const tenant = await service.startTenant();
    const { id } = await lab.failed(tenant);
    const envelopeJson = await take(id);
    await reopen(id);
    await admit(id, envelopeJson);
    // As after a round of the sweep that could not look after it.
    await service.models.requestIntents.updateOne({ _id: id }, { $set: { lookAt: Date.now() + 60_000 } });
    await service.redis.zadd(service.keyspace.shard(0).inflight, 'XX', 1, id);

    await expectOnce(tenant, id);
  }, 90_000);

  it('while MongoDB is away, for longer than an admission may be without a body, has it run all the same', async () => {
    const tenant = await service.startTenant();
    const { inflight } = service.keyspace.shard(0);
    const { id } = await lab.failed(tenant);
    const envelopeJson = await take(id);
    await reopen(id);
    await admit(id, envelopeJson);
    mongo.set('reset');
    await service.redis.zadd(inflight, 'XX', 1, id);
    // The sweep has looked at it.
    await waitFor(
      async () => ((await service.redis.zscore(inflight, id)) === '1' ? undefined : true),
      'the sweep',
      20_000,
    );

    mongo.set('pass');
    await waitFor(() => hasten(id).catch(() => undefined), 'MongoDB', 20_000);

    await expectOnce(tenant, id);
  }, 90_000);
});
