import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, postChat, postStream } from '../../support/chat.ts';
import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import type { TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const BASE = '/platform/v1';
/** Failed authentications are limited by address. */
const ADDRESS = '198.51.100.1';
const service = useService({ env: { TRUST_PROXY: 'loopback' } });

/** The default limits of the interface. */
function startDefaultTenant(): Promise<TestTenant> {
  return service.startTenant({ tenant: { rpm: 60, tpm: 100_000, chat_rpm: 120, stream_rpm: 60 } });
}

const send = (method: 'get' | 'put' | 'patch' | 'delete' | 'head' | 'options', path: string, key?: string) => {
  const call = request(service.app)[method](path).set('X-Forwarded-For', ADDRESS);
  return key === undefined ? call : call.auth(key, { type: 'bearer' });
};

describe('the headers of an answer', () => {
  it('name the id of the request and the key’s limits, complete and streamed', async () => {
    const { key } = await startDefaultTenant();

    const complete = await postChat(service.app, key, chatOf('Hi'));
    const streamed = await postStream(service.app, key, chatOf('Hi'));

    for (const [index, response] of [complete, streamed].entries()) {
      expect(response.status).toBe(200);
      expectUniformHeaders(response);
      expect(response.headers).toMatchObject({
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': String(59 - index),
        'x-ratelimit-limit-tokens': '100000',
      });
      expect(Number(response.headers['x-ratelimit-reset-requests'])).toBeGreaterThanOrEqual(58);
      expect(Number(response.headers['x-ratelimit-reset-requests'])).toBeLessThanOrEqual(60);
    }
    expect(complete.body).toMatchObject({
      id: complete.headers['x-request-id'],
      object: 'chat.completion',
      model: 'mobius',
      choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'stop' }],
    });
  });

  it('count the tokens of the estimate at once and the real ones after the end', async () => {
    const { key } = await startDefaultTenant();
    const remaining = (headers: Record<string, string>) => Number(headers['x-ratelimit-remaining-tokens']);

    const first = await postChat(service.app, key, chatOf('x'.repeat(400), { max_tokens: 300 }));
    const look = await send('get', `${BASE}/nothing`, key);

    expect(remaining(first.headers as Record<string, string>)).toBe(100_000 - 100 - 300);
    expect(remaining(look.headers as Record<string, string>)).toBe(100_000 - Number(first.body.usage.total_tokens));
    expect(Number(look.headers['x-ratelimit-reset-tokens'])).toBeGreaterThan(0);
  });

  it('describe the address where there is no valid key, and no tokens', async () => {
    const response = await request(service.app).post(`${BASE}/chat`).set('X-Forwarded-For', ADDRESS).send(chatOf('Hi'));

    expect(refusalOf(response)).toMatchObject({ status: 401, limit: 60 });
    expect(Object.keys(response.headers).filter((name) => name.endsWith('-tokens'))).toEqual([]);
  });

  it('differ in their id from answer to answer', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => String((await send('get', '/')).headers['x-request-id'])),
    );
    expect(new Set(ids).size).toBe(20);
  });
});

describe('an unknown path', () => {
  it.each(['/', BASE, `${BASE}/`, `${BASE}/nothing`, '/platform/v2/chat', `${BASE}/%E0%A4%A`, `${BASE}/..%2f..%2fetc`])(
    'an unknown path is 404 with and without a key: %s',
    async (path) => {
      const { key } = await startDefaultTenant();

      expect(refusalOf(await send('get', path))).toMatchObject({
        status: 404,
        code: 'not_found',
        type: 'not_found_error',
      });
      expect(refusalOf(await send('get', path, key))).toMatchObject({ status: 404, code: 'not_found' });
    },
  );

  it('describes and counts a valid key where an id has a malformed escape', async () => {
    const { key } = await startDefaultTenant();
    const path = `${BASE}/entities/%E0%A4%A`;

    const response = await send('get', path, key);

    expect(refusalOf(response)).toMatchObject({ status: 400, code: 'invalid_request', limit: 60, remaining: 59 });
    expect(response.headers).toHaveProperty('x-ratelimit-limit-tokens');
    expect(refusalOf(await send('get', path, key)).remaining).toBe(58);
  });

  it('describes and counts a valid key, and counts an invalid one against its address', async () => {
    const { key } = await startDefaultTenant();

    expect(refusalOf(await send('get', `${BASE}/nothing`, key))).toMatchObject({ limit: 60, remaining: 59 });
    expect(refusalOf(await send('get', `${BASE}/nothing`, key))).toMatchObject({ limit: 60, remaining: 58 });
    const before = refusalOf(await send('get', `${BASE}/nothing`, 'absurd')).remaining;
    expect(refusalOf(await send('get', `${BASE}/nothing`, 'nonsense'))).toMatchObject({
      status: 404,
      remaining: before - 1,
    });
  });

  it('an unknown path is 429 for invented keys over the limit of their address, and 404 without a key', async () => {
    const address = '2001:db8:1:2:';
    const path = `${BASE}/nothing`;
    const ask = (index: number, key?: string) => {
      const call = request(service.app)
        .get(path)
        .set('X-Forwarded-For', `${address}:${index + 1}`);
      return key === undefined ? call : call.auth(key, { type: 'bearer' });
    };
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => ask(index, `svc_sk_live_${index}`)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));

    const refused = refusalOf(await ask(60, 'svc_sk_live_more'));
    expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded', limit: 60, remaining: 0 });
    expect(refused.message).toContain('60 failed authentications');
    expect(refusalOf(await ask(61, 'svc_sk_live_again'))).toMatchObject({ status: 429, remaining: 0 });
    expect(refusalOf(await ask(62))).toMatchObject({ status: 404 });
    const { key } = await startDefaultTenant();
    expect(refusalOf(await ask(63, key))).toMatchObject({ status: 404, limit: 60, remaining: 59 });
  });

  it('an unknown path is 429 over the key’s limit', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 1 } });
    await send('get', `${BASE}/nothing`, key);

    expect(refusalOf(await send('get', `${BASE}/nothing`, key))).toMatchObject({ status: 429, code: 'rpm_exceeded' });
  });
});

describe('a wrong method', () => {
  it('is 405 for HEAD, which has headers and no body', async () => {
    const response = await send('head', `${BASE}/chat`);

    expect([response.status, response.headers['allow'], response.text]).toEqual([405, 'POST', undefined]);
    expectUniformHeaders(response);
  });
});

describe('a query string', () => {
  it.each([
    ['an empty one', '?'],
    ['a parameter', '?a=1'],
    ['names that every object has', '?__proto__[x]=1&constructor=2'],
    ['a lone percent sign', '?%'],
    ['half of a character', '?%E0%A4%A'],
    ['8,000 characters', `?${'a=1&'.repeat(2_000)}`],
  ])('a query string changes nothing: %s', async (_what, query) => {
    const { key } = await startDefaultTenant();

    const response = await request(service.app)
      .post(`${BASE}/chat${query}`)
      .auth(key, { type: 'bearer' })
      .send(chatOf('Hi'));

    expect(response.status).toBe(200);
  });
});

describe('a fault of the service', () => {
  it('is one generic 500 with all headers, and tells the operator more than the caller', async () => {
    const { key } = await startDefaultTenant();
    const requestId = `req_${'0'.repeat(24)}`;
    // A record of a type that no script expects stands for any bug.
    await service.redis.rpush(service.keyspace.shard(0).record(requestId), 'x');

    const response = await send('get', `${BASE}/chat/${requestId}`, key);

    const refusal = refusalOf(response);
    expect(refusal).toMatchObject({ status: 500, code: 'internal_error', type: 'api_error', limit: 60 });
    expect(refusal.message).not.toMatch(/redis|WRONGTYPE|script/i);
    expect(service.log.errors().join()).toContain('WRONGTYPE');
  });
});
