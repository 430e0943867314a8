import { expect, it } from '@jest/globals';
import request from 'supertest';

import { startService } from '../../support/service.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0 });

/** `parley_refusals_total` of the public API, by code. */
async function refusals(): Promise<Record<string, number>> {
  const page = await service.metrics();
  const rows = page.matchAll(/^parley_refusals_total\{(.*)\} (\d+)$/gm);
  return Object.fromEntries(
    [...rows].flatMap(([, labels = '', count]) => {
      const code = /code="(\w+)"/.exec(labels)?.[1];
      return code !== undefined && labels.includes('plane="public"') ? [[code, Number(count)]] : [];
    }),
  );
}

it('failed keys and refused scopes are counted, on unknown paths too', async () => {
  const { key } = await service.startTenant({ key: { scopes: ['chat'] } });
  const wrong = { Authorization: 'Bearer svc_sk_live_00000000000000000000000000000000' };

  await request(service.app).get('/platform/v1/keys');
  await request(service.app).get('/platform/v1/keys').set(wrong);
  await request(service.app).get('/platform/v1/no-such-path').set(wrong);
  await apiOf(service, key)('get', '/keys');
  await apiOf(service, key)('get', '/no-such-path');

  expect(await service.metrics()).toMatch(/^parley_not_found_total\{.*plane="public".*\} 1$/m);
  expect(await refusals()).toEqual({ missing_api_key: 1, invalid_api_key: 2, endpoint_not_allowed: 1 });
});

it('a refusal of a stranger who tries no key asks Redis nothing', async () => {
  const meter = await openTcpProxy(redisUrl());
  const metered = await startService({ workers: 0, env: { REDIS_URL: meter.url } });
  const refuse = async () => {
    for (let count = 0; count < 100; count += 1) {
      const { status, headers } = await request(metered.app).get('/nothing');
      expect([status, headers['x-ratelimit-limit-requests']]).toEqual([404, '60']);
    }
  };
  await refuse();
  const before = meter.commands();

  await refuse();

  // What the service asks by itself meanwhile is little.
  expect(meter.commands() - before).toBeLessThan(50);
  await metered.close();
  await meter.close();
});
