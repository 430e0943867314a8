import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, expectUncharged, postChat } from '../support/chat.ts';
import { refusalOf } from '../support/refusal.ts';
import { proxyTo } from '../support/store-proxy.ts';
import type { StoreProxy } from '../support/store-proxy.ts';
import { mongoUri } from '../support/stores.ts';
import { useService } from '../support/use-service.ts';

const CREDITS = 1_000;

describe('with MongoDB away', () => {
  let mongo: StoreProxy;
  beforeAll(async () => {
    mongo = await proxyTo(mongoUri(`durable${String(process.pid)}`));
  });
  const service = useService(() => ({ env: { MONGODB_URI: mongo.url } }));
  afterEach(() => {
    mongo.restore();
  });
  afterAll(async () => {
    await mongo.close();
  });

  it.each(['cut', 'stall'] as const)(
    '(%s) an asynchronous request is refused and costs nothing',
    async (how) => {
      const tenant = await service.startTenant({ credits: CREDITS });
      expect((await postChat(service.app, tenant.key, '{}')).status).toBe(400);
      service.provider.reset();
      mongo[how]();

      const response = await postChat(service.app, tenant.key, chatOf('Later')).set('Prefer', 'respond-async');

      expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable' });
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      mongo.restore();
      await expectUncharged(service, tenant.tenantId, CREDITS);
      expect(service.provider.stats().calls).toBe(0);
    },
    30_000,
  );

  it.each(['cut', 'stall'] as const)(
    '(%s) whoever waits under an Idempotency-Key has the answer',
    async (how) => {
      const tenant = await service.startTenant();
      expect((await postChat(service.app, tenant.key, chatOf('Hi'))).status).toBe(200);
      mongo[how]();

      const response = await postChat(service.app, tenant.key, chatOf('Now')).set('Idempotency-Key', 'order-1');

      expect(response.status).toBe(200);
    },
    30_000,
  );
});
