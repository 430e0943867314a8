import { afterEach, describe, expect, it } from '@jest/globals';

import { DEFAULT_BREAKER, GATHER_MS, afterReport, claimProbe } from '../../../shared/domain/breaker.ts';
import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createRoutingRepository } from '../../../shared/mongo/routing/routing-repository.ts';
import { createBreakerStore } from '../../../shared/redis/stores/breaker-store.ts';
import { CREDENTIALS_KEY, errorOf } from '../../support/admin.ts';
import { useAdmin } from '../../support/use-service.ts';
const admin = useAdmin();
afterEach(async () => {
  expect(admin.errors).toEqual([]);
  await admin.models.providers.deleteMany({});
  await admin.redis.unlink(admin.keyspace.breakers.states, admin.keyspace.breakers.events);
});

const PROVIDER = { kind: 'openai', base_url: 'http://127.0.0.1:8090/v1' };
const putProvider = (name: string) => admin.call('put', `/admin/v1/providers/${name}`, PROVIDER);
const list = async () => (await admin.call('get', '/admin/v1/breakers?order=asc')).body;
const reset = (name: string) => admin.call('post', `/admin/v1/breakers/${name}/reset`);

/** As a worker would. */
const worker = () => createBreakerStore(admin.redis, admin.keyspace, { emit: () => undefined });
const refuse = (name: string) =>
  worker().change(name, (breaker, now) =>
    afterReport(breaker, { slices: [], refusal: 'authentication' }, DEFAULT_BREAKER, now),
  );
const fail = (name: string, failed: Record<string, number>) =>
  worker().change(name, (breaker, now) =>
    afterReport(breaker, { slices: [{ at: now, ok: 2, failed }] }, DEFAULT_BREAKER, now),
  );
/** The pause is over and a worker probes. */
const probe = (name: string) => worker().change(name, (breaker, now) => claimProbe(breaker, 'w', now + 3_600_000));

describe('the settings of a breaker', () => {
  it('reach the worker, the defaults filled in', async () => {
    const put = await admin.call('put', '/admin/v1/providers/sim', {
      ...PROVIDER,
      breaker: { open_ms: 90_000, failure_ratio: 0.25 },
    });
    expect(put.body.breaker).toMatchObject({ open_ms: 90_000, max_open_ms: 90_000, failure_ratio: 0.25 });
    const routing = await createRoutingRepository(admin.mongo, createCredentialCipher(CREDENTIALS_KEY)).load();
    expect(routing.providers.get('sim')?.breaker).toEqual({
      windowMs: 30_000,
      minAttempts: 10,
      failureRatio: 0.25,
      openMs: 90_000,
      maxOpenMs: 90_000,
    });
  });

  it.each([
    ['breaker', { breaker: 5 }],
    ['breaker.window_ms', { breaker: { window_ms: 99 } }],
    ['breaker.min_attempts', { breaker: { min_attempts: 0 } }],
    ['breaker.failure_ratio', { breaker: { failure_ratio: 0 } }],
    ['breaker.failure_ratio', { breaker: { failure_ratio: 1.1 } }],
    ['breaker.open_ms', { breaker: { open_ms: '5' } }],
    ['breaker.max_open_ms', { breaker: { open_ms: 500, max_open_ms: 499 } }],
    ['breaker.colour', { breaker: { colour: 'red' } }],
  ])('the settings of a breaker are refused with the field named: %s %j', async (param, fields) => {
    const response = await admin.call('put', '/admin/v1/providers/sim', { ...PROVIDER, ...fields });
    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
  });
});

describe('the list of breakers', () => {
  it('has one for each provider, closed until something happens', async () => {
    await putProvider('a');
    await putProvider('b');

    expect(await list()).toEqual({
      object: 'list',
      data: ['a', 'b'].map((provider) => ({
        id: provider,
        object: 'breaker',
        provider,
        state: 'closed',
        reason: null,
        since: null,
        retry_at: null,
        probing: false,
        recent_calls: 0,
        recent_failures: 0,
        recent_errors: {},
      })),
      has_more: false,
      first_id: 'a',
      last_id: 'b',
    });
  });

  it('says of an open one since when, why, and when it is probed', async () => {
    await putProvider('a');
    const before = Math.floor(Date.now() / 1000);

    await refuse('a');

    const [breaker] = (await list()).data;
    expect(breaker).toMatchObject({ state: 'open', reason: 'authentication', recent_errors: { authentication: 1 } });
    expect(breaker.since).toBeGreaterThanOrEqual(before);
    expect(breaker.retry_at - breaker.since).toBe(10);
  });

  it('says of a half-open one that it is being probed', async () => {
    await putProvider('a');
    await refuse('a');

    await probe('a');

    expect((await list()).data[0]).toMatchObject({ state: 'half_open', reason: 'authentication', probing: true });
  });

  it('says of a closed one what has failed lately', async () => {
    await putProvider('a');

    await fail('a', { timeout: 2, status_500: 1 });

    expect((await list()).data[0]).toMatchObject({
      state: 'closed',
      recent_calls: 5,
      recent_failures: 3,
      recent_errors: { timeout: 2, status_500: 1 },
    });
  });

  it('the list of breakers comes in pages', async () => {
    for (const name of ['a', 'b', 'c']) await putProvider(name);

    const { body } = await admin.call('get', '/admin/v1/breakers?order=asc&limit=1&after=a');

    expect(body).toMatchObject({ data: [{ id: 'b' }], has_more: true });
  });
});

describe('the list of providers', () => {
  it('the list of providers has the state of each one’s breaker', async () => {
    await putProvider('a');
    await putProvider('b');
    await refuse('b');

    const { body } = await admin.call('get', '/admin/v1/providers?order=asc');
    const one = await admin.call('get', '/admin/v1/providers/b');

    expect(body.data).toMatchObject([{ breaker_state: 'closed' }, { breaker_state: 'open' }]);
    expect(one.body).toMatchObject({ breaker_state: 'open' });
  });

  it('has a closed breaker for a provider that was deleted and made again', async () => {
    await putProvider('a');
    await refuse('a');
    await admin.call('delete', '/admin/v1/providers/a');

    await putProvider('a');

    expect((await list()).data[0]).toMatchObject({ state: 'closed', reason: null });
  });
});

describe('a reset', () => {
  it('a reset closes the breaker, without a body', async () => {
    await putProvider('a');
    await refuse('a');

    const response = await reset('a');

    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({
      id: 'a',
      object: 'breaker',
      state: 'closed',
      reason: 'reset',
      retry_at: null,
    });
    expect((await list()).data[0]).toMatchObject({ state: 'closed', recent_failures: 0 });
  });

  it('of a closed breaker forgets its failures and is no event', async () => {
    await putProvider('a');
    await fail('a', { timeout: 1 });

    expect((await reset('a')).body).toMatchObject({ state: 'closed', reason: null, recent_failures: 0 });

    expect((await admin.call('get', '/admin/v1/breakers/events')).body.data).toEqual([]);
  });

  it.each(['nobody', 'Not%20a%20name', '%00'])('of a provider that does not exist is 404 (%s)', async (name) => {
    const response = await reset(name);

    expect(response.status).toBe(404);
    expect(errorOf(response)).toMatchObject({ code: 'not_found' });
  });

  it('a reset cannot be read', async () => {
    expect((await admin.call('get', '/admin/v1/breakers/a/reset')).status).toBe(405);
  });
});

describe('the events', () => {
  it('are the changes, newest first, each like the body of a webhook', async () => {
    await putProvider('a');
    await refuse('a');
    await probe('a');
    await reset('a');

    const { body } = await admin.call('get', '/admin/v1/breakers/events');

    const types = (body.data as { type: string }[]).map(({ type }) => type);
    expect(types).toEqual(['breaker.closed', 'breaker.half_opened', 'breaker.opened']);
    const oldest = body.data[2];
    expect(oldest).toEqual({
      id: expect.stringMatching(/^\d+-\d+$/),
      object: 'breaker.event',
      created_at: Math.floor(Date.parse(String(oldest.timestamp)) / 1000),
      type: 'breaker.opened',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      data: {
        provider: 'a',
        from: 'closed',
        to: 'open',
        reason: 'authentication',
        retry_at: expect.any(Number),
        errors: { authentication: 1 },
      },
    });
  });

  it('the events come in pages, in both directions', async () => {
    for (const name of ['a', 'b', 'c']) await refuse(name);
    const page = async (query: string) => {
      const { body } = await admin.call('get', `/admin/v1/breakers/events?${query}`);
      const providers = (body.data as { data: { provider: string } }[]).map(({ data }) => data.provider);
      return { providers, more: body.has_more as boolean, last: String(body.last_id) };
    };

    const newest = await page('limit=2');
    expect(newest).toMatchObject({ providers: ['c', 'b'], more: true });
    expect(await page(`limit=2&after=${newest.last}`)).toMatchObject({ providers: ['a'], more: false });
    expect((await page('order=asc&limit=1')).providers).toEqual(['a']);
  });

  it.each(['x', '1', '1-', '-'])('the events cannot be continued after %s', async (after) => {
    const response = await admin.call('get', `/admin/v1/breakers/events?after=${after}`);

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ param: 'after' });
  });
});

it('a breaker whose failures are counted opens when the fleet has been heard', async () => {
  await putProvider('a');
  await fail('a', { timeout: 20 });

  await worker().change('a', (breaker, now) => afterReport(breaker, { slices: [] }, DEFAULT_BREAKER, now + GATHER_MS));

  expect((await list()).data[0]).toMatchObject({ state: 'open', reason: 'timeout', recent_errors: { timeout: 20 } });
});
