import { afterAll, expect, it } from '@jest/globals';
import type { Model } from 'mongoose';
import type request from 'supertest';

import { URLS } from '../../support/billing.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { mongoUri } from '../../support/stores.ts';

/** MongoDB's driver looks again for a server whose connection was cut after half a second, unless told otherwise. */
const SOON = { minHeartbeatFrequencyMS: '20' };

/** A service of its own for each: answers are lost on one connection to MongoDB, whoever waits for them. */
interface Lossy {
  proxy: TcpProxy;
  service: TestService;
}

const open: Lossy[] = [];
async function openLossy(what: string): Promise<Lossy> {
  const proxy = await openTcpProxy(mongoUri(`lost-${what}-${String(process.pid)}`), SOON);
  const service = await startService({ workers: 0, env: { PAYMENTS: 'test', MONGODB_URI: proxy.url } });
  open.push({ proxy, service });
  return { proxy, service };
}
afterAll(async () => {
  for (const { proxy, service } of open) {
    await service.close();
    await proxy.close();
  }
});

/** From the nth answer of MongoDB on, so many are lost: the driver's second try with the first. */
const LOST = 4;
/** More than any of the calls writes and reads. */
const ANSWERS_MAX = 24;

/** Calls with answers lost from the nth on; whether any was. */
async function callLosing(proxy: TcpProxy, nth: number, call: () => Promise<request.Response>) {
  let count = 0;
  proxy.cutReplies(() => {
    count += 1;
    return count >= nth && count < nth + LOST;
  });
  const first = await call();
  proxy.cutReplies(undefined);
  return { first, wasReached: count >= nth };
}

type Api = ReturnType<typeof apiOf>;

interface Creation {
  path: string | ((api: Api) => Promise<string>);
  body: object;
  /** Its collection; an upload that is not a batch yet counts as none. */
  model: keyof TestService['models'];
  more?: object;
}

const WEBHOOK = { url: 'https://receiver.invalid/hook', events: ['key.created'] };
const BATCH = { requests: [{ custom_id: 'a', body: { messages: [{ role: 'user', content: 'Hi' }] } }] };
const CREATIONS: Record<string, Creation> = {
  checkout: { path: '/billing/checkout', body: { ...URLS, credits: 2_000_000 }, model: 'checkouts' },
  key: { path: '/keys', body: { name: 'made once' }, model: 'keys' },
  entity: { path: '/entities', body: { entity_id: 'pupil-7', name: 'Mia' }, model: 'entities' },
  webhook: { path: '/webhooks', body: WEBHOOK, model: 'webhooks' },
  batch: { path: '/batches', body: BATCH, model: 'batches', more: { status: { $ne: 'validating' } } },
  ping: {
    path: async (api) => `/webhooks/${String((await api('post', '/webhooks', WEBHOOK)).body.id)}/test`,
    body: {},
    model: 'webhookDeliveries',
  },
  export: { path: '/compliance/exports', body: { scope: 'tenant' }, model: 'complianceJobs' },
  deletion: { path: '/compliance/deletions', body: { scope: 'entity', entity_id: 'pupil-7' }, model: 'complianceJobs' },
  'whole-deletion': { path: '/compliance/deletions', body: { scope: 'tenant' }, model: 'complianceJobs' },
};

async function expectOne(what: string, { path, body, model, more }: Creation): Promise<void> {
  const { proxy, service } = await openLossy(what);
  const count = (tenantId: string): Promise<number> =>
    (service.models[model] as Model<unknown>).countDocuments({ tenantId, ...more });
  for (let nth = 1; nth <= ANSWERS_MAX; nth += 1) {
    const { tenantId, key } = await service.startTenant();
    const api = apiOf(service, key);
    const before = await count(tenantId);
    const to = typeof path === 'string' ? path : await path(api);
    const call = () => api('post', to, body, { 'Idempotency-Key': 'once' });
    const { first, wasReached } = await callLosing(proxy, nth, call);
    if (first.status >= 500) {
      // Until the claim of the first call lapses.
      const claims = await service.models.idempotency.countDocuments({ tenantId });
      if (claims > 0) expect((await call()).status).toBe(409);
      await service.models.idempotency.updateMany({ tenantId }, { $set: { claimedAt: Date.now() - 61_000 } });
    }

    const second = await call();

    expect([what, nth, second.status]).toEqual([what, nth, expect.any(Number)]);
    expect(second.status).toBeLessThan(300);
    if (first.status < 300) expect(second.body.id).toBe(first.body.id);
    expect([what, nth, await count(tenantId)]).toEqual([what, nth, before + 1]);
    expect((await call()).body.id).toBe(second.body.id);
    if (!wasReached) return;
  }
  throw new Error(`More than ${ANSWERS_MAX} answers for a ${what}: the test does not see the end.`);
}

it('one checkout, key, entity, webhook, batch, ping, export and deletion exist under one key, whichever answers of MongoDB are lost', async () => {
  // At the same time, as nearly all of it is waiting for the driver to try again.
  await Promise.all(Object.entries(CREATIONS).map(([what, creation]) => expectOne(what, creation)));
}, 120_000);
