import { afterEach, expect, it } from '@jest/globals';

import { call, ENDPOINT_NAMES, endpointRule, makeResources } from '../../support/endpoints.ts';
import { refusalOf } from '../../support/refusal.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** A call to MongoDB is given a second and one more try; a hang would take many times that. */
const LIMIT_MS = 8_000;

const mongo = useStarted('mongo', () => openTcpProxy(mongoUri(`endpoints${String(process.pid)}`)));

const service = useService(() => ({ env: { MONGODB_URI: mongo.url, PAYMENTS: 'test' } }));
afterEach(() => {
  mongo.set('pass');
});

/** What is not about chat lives in MongoDB; the tiers' names do not, and the balance is also in Redis. */
const ELSEWHERE = ['listModels', 'getModel', 'getBilling'];
const names = ENDPOINT_NAMES.filter((name) => endpointRule(name).counts === 'request' && !ELSEWHERE.includes(name));

it.each(['reset', 'silent'] as const)(
  'every endpoint beside chat is 503 in time with MongoDB away (%s)',
  async (how) => {
    const owner = await service.startTenant();
    const values = await makeResources(service, owner);
    // The key is in the cache, so that the endpoints themselves meet the fault.
    await call(service, 'listModels', { key: owner.key });
    mongo.set(how);

    const answers = await Promise.all(
      names.map(async (name) => {
        const start = performance.now();
        const { status, code } = refusalOf(await call(service, name, { key: owner.key, values }));
        return { name, status, code, inTime: performance.now() - start < LIMIT_MS };
      }),
    );

    expect(answers).toEqual(names.map((name) => ({ name, status: 503, code: 'model_unavailable', inTime: true })));
  },
);
