import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, postChat, postStream, requestIdOf, waitFor, waitUntil } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { redisUrl } from '../../support/stores.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** docs/spec.md#stores-away: with Redis away, 503 within 2 s; and what this machine takes beside it. */
const LIMIT_MS = 2_500;

async function timed(call: request.Test): Promise<{ response: request.Response; tookMs: number }> {
  const start = performance.now();
  const response = await call;
  return { response, tookMs: performance.now() - start };
}

describe('with Redis away', () => {
  const redis = useStarted('redis', () => openTcpProxy(redisUrl()));

  const service = useService(() => ({ env: { REDIS_URL: redis.url, TRUST_PROXY: 'loopback' } }));
  afterEach(async () => {
    redis.set('pass');
    const { key } = await waitFor(
      () => service.startTenant().catch(() => undefined),
      'the return of Redis to the administration',
    );
    await waitUntil(
      async () => (await postChat(service.app, key, chatOf('Hi'))).status === 200,
      'the return of Redis',
      15_000,
    );
  });

  it.each(['reset', 'silent'] as const)('(%s) the first request of a shard is 503 in time', async (how) => {
    const { key } = await service.startTenant();
    redis.set(how);

    const { response, tookMs } = await timed(postChat(service.app, key, chatOf('Hi')));

    expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable', type: 'overloaded_error' });
    expect(tookMs).toBeLessThan(LIMIT_MS);
  });

  it.each(['reset', 'silent'] as const)('(%s) readiness stays: a typed 503 beats the page of a proxy', async (how) => {
    redis.set(how);

    const response = await request(service.app).get('/health/ready');

    expect([response.status, response.body]).toEqual([200, { status: 'ok', checks: {} }]);
  });

  it('the metrics say which store is away', async () => {
    expect(await service.metrics()).toContain('parley_check_passes{check="redis",process="ingress"} 1');
    redis.set('reset');

    const page = await waitFor(async () => {
      const text = await service.metrics();
      return text.includes('parley_check_passes{check="redis",process="ingress"} 0') ? text : undefined;
    }, 'the check of Redis to fail');

    expect(page).toContain('parley_check_passes{check="mongo",process="ingress"} 1');
  });

  it.each(['reset', 'silent'] as const)(
    '(%s) a known key is answered 503 in time, complete and streamed',
    async (how) => {
      const { key } = await service.startTenant();
      expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
      redis.set(how);

      for (const post of [postChat, postStream]) {
        const { response, tookMs } = await timed(post(service.app, key, chatOf('Hi')));

        expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable', limit: 100_000 });
        expect(tookMs).toBeLessThan(LIMIT_MS);
      }
    },
  );

  it.each(['reset', 'silent'] as const)(
    '(%s) a refusal stays what it is, with all headers and in time',
    async (how) => {
      const { key } = await service.startTenant();
      redis.set(how);

      const badBody = await timed(postChat(service.app, key, '{'));
      const badKey = await timed(postChat(service.app, 'nonsense', chatOf('Hi')).set('X-Forwarded-For', '203.0.113.5'));

      expect(refusalOf(badBody.response)).toMatchObject({ status: 400, code: 'invalid_request', limit: 100_000 });
      expect(refusalOf(badKey.response)).toMatchObject({ status: 401, code: 'invalid_api_key', limit: 60 });
      for (const { tookMs } of [badBody, badKey]) expect(tookMs).toBeLessThan(LIMIT_MS);
    },
  );

  it.each(['reset', 'silent'] as const)('(%s) every other endpoint is 503 in time, with Retry-After', async (how) => {
    const { key } = await service.startTenant();
    const answered = await postChat(service.app, key, chatOf('Hi'));
    const path = `/platform/v1/chat`;
    const id = requestIdOf(answered);
    const calls = {
      lookUp: () => request(service.app).get(`${path}/${id}`),
      cancel: () => request(service.app).post(`${path}/${id}/cancel`),
      resume: () => request(service.app).get(`${path}/stream/${id}`),
      models: () => request(service.app).get('/platform/v1/models'),
      completions: () =>
        request(service.app)
          .post(`${path}/completions`)
          .send(chatOf('Hi', { model: 'mobius' })),
    };
    redis.set(how);

    for (const call of Object.values(calls)) {
      const { response, tookMs } = await timed(call().auth(key, { type: 'bearer' }));

      expect(refusalOf(response)).toMatchObject({ status: 503, code: 'model_unavailable', limit: 100_000 });
      expect(response.headers['retry-after']).toBe('1');
      expect(tookMs).toBeLessThan(LIMIT_MS);
    }
  });

  it('nothing that was refused is held or charged afterwards', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 500 });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    await waitFor(() => service.models.ledger.findOne({ tenantId, type: 'usage' }).lean(), 'the ledger entry');
    redis.set('silent');
    const answers = await Promise.all(Array.from({ length: 5 }, () => postChat(service.app, key, chatOf('Hi'))));
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(503));

    redis.set('pass');

    const { body } = await waitFor(async () => {
      const answer = await service.admin('get', `/tenants/${tenantId}`);
      return answer.status === 200 && answer.body.held === 0 ? answer : undefined;
    }, 'the end of all holds');
    expect(body.balance).toBeGreaterThan(0);
    expect(await service.models.ledger.countDocuments({ tenantId, type: 'usage' })).toBe(1);
  });
});
