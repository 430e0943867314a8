import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type request from 'supertest';

import { URLS } from '../support/billing.ts';
import { startLossyProxy } from '../support/lossy-proxy.ts';
import type { LossyProxy } from '../support/lossy-proxy.ts';
import { apiOf } from '../support/tenant-api.ts';
import { useService } from '../support/use-service.ts';
import { mongoUri } from '../support/stores.ts';

let proxy: LossyProxy;
beforeAll(async () => {
  proxy = await startLossyProxy(mongoUri(`lost${String(process.pid)}`));
});
const service = useService(() => ({ workers: 0, env: { PAYMENTS: 'test', MONGODB_URI: proxy.url } }));
afterAll(async () => {
  await proxy.close();
});

/** From the nth answer of MongoDB on, so many are lost: the driver's second try with the first. */
const LOST = 4;
/** More than any of the calls writes and reads. */
const ANSWERS_MAX = 24;

/** Calls with answers lost from the nth on; whether any was. */
async function callLosing(nth: number, call: () => Promise<request.Response>) {
  let count = 0;
  proxy.loseReplies(() => {
    count += 1;
    return count >= nth && count < nth + LOST;
  });
  const first = await call();
  proxy.loseReplies(() => false);
  return { first, wasReached: count >= nth };
}

interface Creation {
  path: string;
  body: object;
  count(tenantId: string): Promise<number>;
}

const CREATIONS: [string, Creation][] = [
  [
    'checkout',
    {
      path: '/billing/checkout',
      body: { ...URLS, credits: 2_000_000 },
      count: (tenantId) => service.models.checkouts.countDocuments({ tenantId }),
    },
  ],
  [
    'key',
    {
      path: '/keys',
      body: { name: 'made once' },
      count: (tenantId) => service.models.keys.countDocuments({ tenantId }),
    },
  ],
  [
    'webhook',
    {
      path: '/webhooks',
      body: { url: 'https://receiver.invalid/hook', events: ['key.created'] },
      count: (tenantId) => service.models.webhooks.countDocuments({ tenantId }),
    },
  ],
  [
    'batch',
    {
      path: '/batches',
      body: { requests: [{ custom_id: 'a', body: { messages: [{ role: 'user', content: 'Hi' }] } }] },
      count: (tenantId) => service.models.batches.countDocuments({ tenantId, status: { $ne: 'validating' } }),
    },
  ],
];

it.each(CREATIONS)(
  'one %s exists under one key, whichever answers of MongoDB are lost',
  async (what, { path, body, count }) => {
    for (let nth = 1; nth <= ANSWERS_MAX; nth += 1) {
      const { tenantId, key } = await service.startTenant();
      const api = apiOf(service, key);
      const before = await count(tenantId);
      const call = () => api('post', path, body, { 'Idempotency-Key': 'once' });
      const { first, wasReached } = await callLosing(nth, call);
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
      expect([nth, await count(tenantId)]).toEqual([nth, before + 1]);
      expect((await call()).body.id).toBe(second.body.id);
      if (!wasReached) return;
    }
    throw new Error(`More than ${ANSWERS_MAX} answers: the test does not see the end.`);
  },
  120_000,
);
