import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, postChat, postStream } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';
import { moveUse } from '../../support/use-window.ts';
const service = useService();

/** Short prompts and answers: the tokens of a request are few and known. */
const SHORT = chatOf('Hi', { max_tokens: 5 });

/** Sends one after another until something else than 200 comes; returns how many were answered, and that. */
async function sendUntilRefused(post: () => request.Test, most = 200): Promise<[number, request.Response]> {
  for (let answered = 0; answered <= most; answered += 1) {
    const response = await post();
    if (response.status !== 200) return [answered, response];
  }
  throw new Error(`Nothing was refused in ${String(most)} requests`);
}

/** As if a minute had passed for everything that the key has used. */
async function passMinute(keyId: string): Promise<void> {
  const keys = service.keyspace.shard(0);
  // All of the second in which something was counted has to have left.
  await moveUse(service.redis, keys.tokenWindow(keyId), 61);
  for (const log of [keys.keyRpm(keyId), keys.throttle('chat', keyId), keys.throttle('chat.stream', keyId)])
    for (const member of await service.redis.zrange(log, '0', '-1')) await service.redis.zincrby(log, -60_000, member);
}

describe('the requests of a minute', () => {
  it('are 60 by default, and then 429 rpm_exceeded until Retry-After', async () => {
    const { key, keyId } = await service.startTenant({ tenant: { rpm: 60 } });
    const post = () => postChat(service.app, key, SHORT);

    const [answered, response] = await sendUntilRefused(post);

    expect(answered).toBe(60);
    const refusal = refusalOf(response);
    expect(refusal).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      type: 'rate_limit_error',
      limit: 60,
      remaining: 0,
    });
    expect(refusal.message).toContain('60 requests per minute');
    expect(refusal.retryAfter).toBeLessThanOrEqual(60);
    await passMinute(keyId);
    expect((await post()).status).toBe(200);
  });

  it('follow a changed limit of the tenant within a second, though the last refusal holds', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { rpm: 1 } });
    await postChat(service.app, key, SHORT);
    expect((await postChat(service.app, key, SHORT)).status).toBe(429);

    await service.admin('patch', `/tenants/${tenantId}`, { rpm: 5 });

    const [answered] = await sendUntilRefused(() => postChat(service.app, key, SHORT));
    expect(answered).toBe(4);
  });
});

describe('the calls beside chat of all keys of a tenant together', () => {
  /** As if other keys of the tenant had made so many in this minute. */
  async function fill(log: 'keyRpm' | 'lookups', tenantId: string, count: number): Promise<void> {
    const key = service.keyspace.shard(0)[log](tenantId);
    await service.redis.zadd(key, ...Array.from({ length: count }, (_, index) => [Date.now(), `req_${index}`]).flat());
  }

  it('are ten times what a key has by default, and then 429 rpm_exceeded', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { rpm: 60 } });
    const list = () => request(service.app).get('/platform/v1/keys').auth(key, { type: 'bearer' });
    await fill('keyRpm', tenantId, 599);

    expect((await list()).status).toBe(200);
    const refused = await list();

    expect(refused.status).toBe(429);
    expect(errorOf(refused)).toMatchObject({
      code: 'rpm_exceeded',
      message:
        "The account's limit of 600 requests per minute over all keys, chat apart, is reached; wait as Retry-After says.",
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    // Chat has a ceiling of its own.
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    expect((await postChat(service.app, key, { messages: 'Hi' })).status).toBe(400);
  });

  it('are as many as a key may make that has more', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { rpm: 602 } });
    await fill('keyRpm', tenantId, 601);
    const list = () => request(service.app).get('/platform/v1/keys').auth(key, { type: 'bearer' });

    expect([(await list()).status, (await list()).status]).toEqual([200, 429]);
  });

  it('are 6,000 look-ups', async () => {
    const { key, tenantId } = await service.startTenant();
    await fill('lookups', tenantId, 5_999);
    const look = () => request(service.app).get('/platform/v1/chat/req_0').auth(key, { type: 'bearer' });

    expect((await look()).status).toBe(404);
    const refused = await look();
    expect(refused.status).toBe(429);
    expect(errorOf(refused)['message']).toContain('6000 look-ups per minute over all keys');
  });
});

describe('the throttles of the endpoints', () => {
  it('are 120 a minute for /chat and 60 for /chat/stream, apart from each other and from the rpm', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 1_000, chat_rpm: 120, stream_rpm: 60 } });

    const complete = await Promise.all(Array.from({ length: 125 }, () => postChat(service.app, key, SHORT)));
    const streamed = await Promise.all(Array.from({ length: 65 }, () => postStream(service.app, key, SHORT)));

    const refusedOf = (answers: request.Response[]) => answers.filter(({ status }) => status === 429);
    expect([refusedOf(complete).length, refusedOf(streamed).length]).toEqual([5, 5]);
    for (const [answers, message] of [
      [complete, '120 requests per minute on POST /chat '],
      [streamed, '60 requests per minute on POST /chat/stream '],
    ] as const) {
      const [refused] = refusedOf(answers);
      if (refused === undefined) throw new Error('none was refused');
      expect(refusalOf(refused)).toMatchObject({
        code: 'rpm_exceeded',
        limit: 1_000,
        message: expect.stringContaining(message),
      });
    }
  });
});

describe('the requests of a day', () => {
  it('are limited where a number is set: 429 rpm_exceeded that names the day', async () => {
    const { key } = await service.startTenant({ tenant: { daily_requests: 3 } });

    const [answered, response] = await sendUntilRefused(() => postChat(service.app, key, SHORT));

    expect(answered).toBe(3);
    const refusal = refusalOf(response);
    expect(refusal).toMatchObject({
      status: 429,
      code: 'rpm_exceeded',
      message: expect.stringContaining('3 requests per day'),
    });
    expect(refusal.retryAfter).toBeGreaterThan(86_000);
  });

  it('binds longer than a full minute, which the reset says as well', async () => {
    const { key } = await service.startTenant({ tenant: { rpm: 2, daily_requests: 2 } });

    const [, response] = await sendUntilRefused(() => postChat(service.app, key, SHORT));

    const { 'retry-after': retryAfter, 'x-ratelimit-reset-requests': reset } = response.headers;
    expect([reset, Number(retryAfter) > 86_000]).toEqual([retryAfter, true]);
  });
});

describe('the tokens of a minute', () => {
  it('are 429 tpm_exceeded over the limit, with the headers of the tokens', async () => {
    const { key, keyId } = await service.startTenant({ tenant: { tpm: 100 } });
    const post = () => postChat(service.app, key, chatOf('x'.repeat(120), { max_tokens: 10 }));

    const [answered, response] = await sendUntilRefused(post);

    expect(answered).toBeGreaterThanOrEqual(1);
    expect(refusalOf(response)).toMatchObject({
      status: 429,
      code: 'tpm_exceeded',
      type: 'rate_limit_error',
      message: expect.stringContaining('100 tokens per minute'),
    });
    expect(response.headers['x-ratelimit-limit-tokens']).toBe('100');
    expect(Number(response.headers['x-ratelimit-remaining-tokens'])).toBeLessThan(100);
    await passMinute(keyId);
    expect((await post()).status).toBe(200);
  });
});
