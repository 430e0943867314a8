import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  requestIdOf,
  textOf,
} from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('a request that reaches its time limit of one second', () => {
  const service = useService({ workers: 0, env: { REQUEST_TIMEOUT_SECONDS: '1' } });
  beforeAll(async () => {
    await service.setProvider({ max_retries: 5 });
    await service.startWorker();
  });
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('before any text is a 504, and the provider’s call is over (%s)', async (_kind, post) => {
    service.provider.change({ first_token_ms: 60_000 });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await post(service.app, key, chatOf('Slow'));

    expect(response.status).toBe(504);
    expect(errorOf(response)).toMatchObject({ code: 'timeout', type: 'timeout_error' });
    expect(service.provider.request(requestIdOf(response))).toMatchObject({ calls: 1, completed: 0 });
    await expectUncharged(service, tenantId, 10_000);
  });

  it('while it waits to ask again is a 504, not a fault of the service', async () => {
    service.provider.change({ fail: 'status', status: 429, retry_after: 9 });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf('Wait'));

    expect(response.status).toBe(504);
    expect(errorOf(response)).toMatchObject({ code: 'timeout' });
    await expectUncharged(service, tenantId, 10_000);
  });

  it('in the middle of a stream ends it with the typed error, charged for what came', async () => {
    service.provider.change({ chunks: 100, chunk_ms: 50 });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Endless'));

    const events = parseSse(String(response.body));
    expect(textOf(events)).not.toBe('');
    expect(events.at(-1)?.chunk).toMatchObject({ choices: [{ finish_reason: 'error' }], error: { code: 'timeout' } });
    expect(await ledgerOf(service, response)).toMatchObject({ finishReason: 'error', estimated: true });
  });

  it('in the middle of a complete answer, of which nobody sees a word, charges nothing', async () => {
    service.provider.change({ chunks: 100, chunk_ms: 50 });
    // So few credits that the answer is watched while it grows.
    const { key, tenantId } = await service.startTenant({ credits: 2_000 });

    const response = await postChat(service.app, key, chatOf('Endless'));

    expect(response.status).toBe(504);
    await expectUncharged(service, tenantId, 2_000);
  });
});

describe('a tier without a provider', () => {
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    await service.models.tiers.deleteOne({ _id: 'oloid' });
    await service.startWorker();
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('is model_unavailable, and the log says what to do (%s)', async (_kind, post) => {
    const { key, tenantId } = await service.startTenant({ credits: 50_000 });

    const response = await post(service.app, key, chatOf('Anybody?', { model: 'oloid' }));

    expect(response.status).toBe(503);
    expect(errorOf(response)).toMatchObject({ code: 'model_unavailable', type: 'overloaded_error' });
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    expect(service.provider.stats().calls).toBe(0);
    await expectUncharged(service, tenantId, 50_000);
    expect(service.log.lines.map(({ message }) => message).join()).toContain('PUT /admin/v1/tiers/');
  });

  it('a tier without a provider does not trouble the other tier', async () => {
    const { key } = await service.startTenant();

    expect((await postChat(service.app, key, chatOf('Hello'))).status).toBe(200);
  });
});
