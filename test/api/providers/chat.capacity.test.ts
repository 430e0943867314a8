import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import type { RunningWorker, TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const ASYNC = ['Prefer', 'respond-async'] as const;

/** What the provider has at once, and the most it had. */
interface Seen {
  stop(): number;
}

describe('a provider that takes a number of calls at once', () => {
  const service = useService({ workers: 0 });
  const workers: RunningWorker[] = [];
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.close()));
    service.provider.restore();
    service.provider.reset();
  });
  const startWorkers = async (count: number) => {
    for (let index = 0; index < count; index += 1) workers.push(await service.startWorker());
  };
  /** A model of its own, so that nothing is known of it. */
  let models = 0;
  async function route(tier: 'mobius' | 'oloid', settings: string, target: object = {}, provider: object = {}) {
    const name = `provider${(models += 1)}`;
    await service.setProvider(provider, name);
    await service.setTargets(tier, [{ provider: name, model: `sim?${settings}`, ...target }]);
    return name;
  }
  function watch(): Seen {
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, service.provider.stats().in_flight)), 5);
    return {
      stop() {
        clearInterval(timer);
        return most;
      },
    };
  }
  const get = async (tenant: TestTenant, id: string): Promise<Record<string, unknown>> =>
    (await request(service.app).get(`/platform/v1/chat/${id}`).auth(tenant.key, { type: 'bearer' })).body;
  const later = async (tenant: TestTenant, model: 'mobius' | 'oloid') =>
    String((await postChat(service.app, tenant.key, chatOf('Later', { model })).set(...ASYNC)).body.id);
  const capacityOf = async (name: string) =>
    (await service.admin('get', `/providers/${name}`)).body.capacity as Record<string, unknown>[];

  it.each([
    ['its setting', {}, { max_in_flight: 3 }],
    ["its target's setting", { max_in_flight: 3 }, {}],
  ])('never has more than %s says, in a fleet of workers; the others wait in line and are answered', async (...of) => {
    const [, target, provider] = of;
    const name = await route('mobius', 'slots=3&first_token_ms=20&chunk_ms=5&chunks=20', target, provider);
    await startWorkers(2);
    const { key } = await service.startTenant();
    const seen = watch();

    const answers = await Promise.all(Array.from({ length: 40 }, () => postChat(service.app, key, chatOf('At once'))));

    expect(seen.stop()).toBe(3);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    // No call was made twice.
    expect(service.provider.stats().calls).toBe(40);
    const [capacity] = await capacityOf(name);
    expect(capacity).toMatchObject({ source: 'set', ceiling: 3 });
    const breakers = (await service.admin('get', '/breakers?limit=100')).body.data as Record<string, unknown>[];
    expect(breakers.map(({ state }) => state)).toEqual(breakers.map(() => 'closed'));
  });

  it('does not hold up the other tier, and shows those that wait their position', async () => {
    await route('mobius', 'first_token_ms=600000', { max_in_flight: 1 });
    await route('oloid', 'chunks=1', { max_in_flight: 5 });
    await startWorkers(1);
    const tenant = await service.startTenant();
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1) ids.push(await later(tenant, 'mobius'));
    await waitUntil(async () => (await get(tenant, ids[0] ?? ''))['status'] === 'in_progress', 'the first request');

    const answers = await Promise.all(
      Array.from({ length: 12 }, () => postChat(service.app, tenant.key, chatOf('Quick', { model: 'oloid' }))),
    );

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const waiting = await Promise.all(ids.slice(1).map((id) => get(tenant, id)));
    expect(waiting.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued']);
    expect(waiting.map(({ queue }) => queue)).toMatchObject([{ position: 1 }, { position: 2 }, { position: 3 }]);
    for (const id of ids)
      await request(service.app).post(`/platform/v1/chat/${id}/cancel`).auth(tenant.key, { type: 'bearer' });
  });

  it('goes by a setting that is changed while requests wait', async () => {
    const name = await route('mobius', 'first_token_ms=300', {}, { max_in_flight: 1 });
    await startWorkers(1);
    const { key } = await service.startTenant();
    const answers = Array.from({ length: 30 }, () => postChat(service.app, key, chatOf('At once')).then());
    const seen = watch();

    await service.setProvider({ max_in_flight: 30 }, name);

    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(seen.stop()).toBeGreaterThan(5);
  });

  it('shows the ceiling that it has in its metrics, and none once no tier calls it', async () => {
    const name = await route('mobius', 'chunks=1');
    await startWorkers(1);
    const { key } = await service.startTenant();
    await postChat(service.app, key, chatOf('Hi'));
    const ceilings = async () =>
      [
        ...((await workers[0]?.metrics()) ?? '').matchAll(
          /^parley_provider_ceiling\{provider="(.*?)".*?source="(\w+)"/gm,
        ),
      ]
        .filter(([, provider]) => provider === name)
        .map(([, , source]) => source);
    const become = (sources: string[]) =>
      waitFor(async () => ((await ceilings()).join() === sources.join() ? true : undefined), sources.join());
    await become(['found']);

    await service.setTargets('mobius', [{ provider: name, model: 'sim?chunks=1', max_in_flight: 7 }]);
    await become(['set']);
    await route('mobius', 'chunks=1');
    await become([]);
  });

  it('is found to be full by the calls that wait inside it, and is sent no more than it serves', async () => {
    const name = await route('mobius', 'slots=4&first_token_ms=50&chunk_ms=100&chunks=10');
    await startWorkers(2);
    const { key } = await service.startTenant();

    const answers = await Promise.all(Array.from({ length: 60 }, () => postChat(service.app, key, chatOf('At once'))));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(service.provider.stats().calls).toBe(60);
    const [capacity] = await capacityOf(name);
    expect(capacity).toMatchObject({ source: 'found' });
    expect(Number(capacity?.['ceiling'])).toBeLessThanOrEqual(12);
  });

  it('is not taken for broken where it answers 429 for what is above its limits, and those requests wait', async () => {
    await route('mobius', 'rpm=1200&chunks=2', {}, { breaker: { min_attempts: 5 }, max_retries: 0 });
    await startWorkers(2);
    const { key } = await service.startTenant();
    await Promise.all(Array.from({ length: 1_150 }, () => postChat(service.app, key, chatOf('Use it up'))));

    const answers = await Promise.all(Array.from({ length: 150 }, () => postChat(service.app, key, chatOf('More'))));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const breakers = (await service.admin('get', '/breakers?limit=100')).body.data as Record<string, unknown>[];
    expect(breakers.map(({ state }) => state)).toEqual(breakers.map(() => 'closed'));
  });

  it('is passed over while it answers 429 beside others of its priority, which does not count against it', async () => {
    const [busy, idle] = ['busy', 'idle'];
    for (const name of [busy, idle]) await service.setProvider({ max_retries: 0, breaker: { min_attempts: 5 } }, name);
    const model = 'sim?chunks=3';
    await service.setTargets('mobius', [
      { provider: busy, model, weight: 9 },
      { provider: idle, model: 'sim?text=idle&rpm=1000000', weight: 1 },
    ]);
    await startWorkers(1);
    const { key } = await service.startTenant();
    const ask = () => postChat(service.app, key, chatOf('Hello'));
    await Promise.all(Array.from({ length: 8 }, ask));
    service.provider.change({ rpm: 1 });

    const answers = await Promise.all(Array.from({ length: 20 }, ask));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const breakers = (await service.admin('get', '/breakers?limit=100')).body.data as Record<string, unknown>[];
    expect(breakers.find(({ id }) => id === busy)).toMatchObject({ state: 'closed' });
  });

  it('serves interactive requests first and lines of batches with what they leave', async () => {
    await route('mobius', 'slots=2&first_token_ms=50&chunk_ms=20&chunks=5', {}, { max_in_flight: 2 });
    await startWorkers(1);
    const { key } = await service.startTenant();
    const lines = Array.from({ length: 60 }, (_, index) => ({ custom_id: `line-${index}`, body: chatOf('Line') }));
    const { body: batch } = await request(service.app)
      .post('/platform/v1/batches')
      .auth(key, { type: 'bearer' })
      .send({ requests: lines });
    await waitUntil(() => service.provider.stats().calls >= 4, 'lines that run');

    const answers = await Promise.all(Array.from({ length: 20 }, () => postChat(service.app, key, chatOf('Now'))));

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const { body: state } = await request(service.app)
      .get(`/platform/v1/batches/${String(batch.id)}`)
      .auth(key, { type: 'bearer' });
    // Two at a time: the interactive ones alone take as long as 20 lines do.
    expect(state.request_counts.completed).toBeLessThan(20);
    await waitFor(async () => {
      const { body } = await request(service.app)
        .get(`/platform/v1/batches/${String(batch.id)}`)
        .auth(key, { type: 'bearer' });
      return body.request_counts.completed === 60 ? true : undefined;
    }, 'the batch');
  });
});
