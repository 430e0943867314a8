import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, errorOf, expectUncharged, ledgerOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';

/** `mobius` has one provider that is tried again; `oloid` has the same without retries, and a second one behind it. */
describe('a provider that fails before any text', () => {
  const backup = createSimulatedProvider({ defaults: { text: 'from the backup' } });
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    const { url } = await backup.listen();
    await service.setProvider({ max_retries: 2 });
    await service.setProvider({ max_retries: 0 }, 'once');
    await service.setProvider({ base_url: `${url}/v1` }, 'backup');
    await service.setTargets('oloid', [
      { provider: 'backup', model: 'backup-model', priority: 2 },
      { provider: 'once', model: 'sim', priority: 1 },
    ]);
    await service.startWorker();
  });
  afterEach(async () => {
    service.provider.restore();
    service.provider.reset();
    backup.restore();
    backup.reset();
    await service.resetBreakers();
  });
  afterAll(async () => {
    await backup.close();
  });

  describe('is asked again', () => {
    it.each([
      ['an error status', { fail: 'status', status: 500 }],
      ['an overload', { fail: 'status', status: 429 }],
      ['a reset connection', { fail: 'reset', fail_after: -1 }],
      ['a connection that closes', { fail: 'truncate', fail_after: -1 }],
      ['a stream cut ahead of its text', { fail: 'truncate', fail_after: 0 }],
      ['a malformed event ahead of its text', { fail: 'malformed', fail_after: 0 }],
    ] as const)('after %s, and the caller notices nothing', async (_what, settings) => {
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });
      service.provider.change({ ...settings, fail_times: 1, text: 'second try' });

      const [complete, streamed] = await Promise.all([
        postChat(service.app, key, chatOf('Again')),
        postStream(service.app, key, chatOf('And again')),
      ]);

      expect(complete.body.choices[0].message.content).toBe('second try');
      expect(streamed.status).toBe(200);
      expect(String(streamed.body)).toContain('second');
      for (const response of [complete, streamed]) {
        const counted = service.provider.request(requestIdOf(response));
        expect(counted).toMatchObject({ calls: 2, failed: 1, completed: 1 });
        expect(await ledgerOf(service, response)).toMatchObject({ tenantId, estimated: false });
      }
      const tokens = service.provider.stats();
      const entries = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
      expect(entries.reduce((sum, entry) => sum - entry.amountMicro, 0)).toBe(
        (tokens.prompt_tokens + tokens.completion_tokens) * 1_000_000,
      );
    });

    it('not before the time it asks for with Retry-After', async () => {
      const { key } = await service.startTenant();
      service.provider.change({ fail: 'status', status: 429, retry_after: 1, fail_times: 1 });
      const startedAt = performance.now();

      const response = await postChat(service.app, key, chatOf('Wait a second'));

      expect(response.status).toBe(200);
      expect(performance.now() - startedAt).toBeGreaterThan(1_000);
    });

    it.each([
      [30, '30'],
      [1, '5'],
      [86_400, '3600'],
    ])('not while it asks for %d s: the caller hears of that wait, within reason', async (asked, told) => {
      const { key } = await service.startTenant();
      service.provider.change({ fail: 'status', status: 429, retry_after: asked });

      const response = await postChat(service.app, key, chatOf('Busy'));

      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
      expect(response.headers['retry-after']).toBe(told);
    });

    it('as often as it is set to, then the caller hears of it and pays nothing', async () => {
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });
      service.provider.change({ fail: 'status', status: 503 });

      const response = await postChat(service.app, key, chatOf('Never'));

      expect(response.status).toBe(503);
      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable', type: 'overloaded_error' });
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      expect(service.provider.request(requestIdOf(response))?.calls).toBe(3);
      await expectUncharged(service, tenantId, 10_000);
    });
  });

  describe('is replaced by the next target', () => {
    it.each([
      ['500', { fail: 'status', status: 500 }],
      ['401', { fail: 'status', status: 401 }],
      ['402', { fail: 'status', status: 402 }],
      ['403', { fail: 'status', status: 403 }],
      ['404', { fail: 'status', status: 404 }],
      ['a wait that is too long', { fail: 'status', status: 429, retry_after: 3_600 }],
      ['a reset connection', { fail: 'reset', fail_after: -1 }],
    ] as const)('after %s, at once and booked under its name', async (_what, settings) => {
      const { key } = await service.startTenant();
      service.provider.change(settings);

      const response = await postChat(service.app, key, chatOf('Anyone?', { model: 'oloid' }));

      expect(response.status).toBe(200);
      expect(response.body).toMatchObject({ model: 'oloid', choices: [{ message: { content: 'from the backup' } }] });
      // A connection that has served before and is reset may be stale: a new one is tried, too.
      const tries = settings.fail === 'reset' ? [1, 2] : [1];
      expect(tries).toContain(service.provider.request(requestIdOf(response))?.calls);
      expect(backup.request(requestIdOf(response))?.calls).toBe(1);
      expect(await ledgerOf(service, response)).toMatchObject({ provider: 'backup', model: 'backup-model' });
    });

    it.each([401, 403])(
      'a provider that fails before any text is replaced by the next target: without being asked again after %d',
      async (status) => {
        const { key } = await service.startTenant();
        service.provider.change({ fail: 'status', status });

        const response = await postChat(service.app, key, chatOf('Refused'));

        expect(response.status).toBe(503);
        expect(service.provider.request(requestIdOf(response))?.calls).toBe(1);
      },
    );

    it('only until the first text: a stream that breaks after it is not begun again', async () => {
      const { key } = await service.startTenant();
      service.provider.change({ text: 'first second third fourth', chunks: 4, fail: 'truncate', fail_after: 3 });

      const response = await postStream(service.app, key, chatOf('Break', { model: 'oloid' }));

      expect(String(response.body)).toContain('"finish_reason":"error"');
      expect(String(response.body)).not.toContain('backup');
      expect(backup.stats().calls).toBe(0);
    });

    it.each([
      [{ retry_after: 60 }, { retry_after: 20 }, '20'],
      [{ retry_after: 60 }, {}, '5'],
      [{}, { retry_after: 60 }, '5'],
    ])('and the caller hears of the shortest wait: %j, %j', async (first, second, told) => {
      const { key } = await service.startTenant();
      service.provider.change({ fail: 'status', status: 429, ...first });
      backup.change({ fail: 'status', status: 429, ...second });

      const response = await postChat(service.app, key, chatOf('Busy', { model: 'oloid' }));

      expect(response.headers['retry-after']).toBe(told);
    });

    it('and when all have failed the caller gets one error', async () => {
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });
      service.provider.change({ fail: 'status', status: 403 });
      backup.change({ fail: 'status', status: 401 });

      const response = await postChat(service.app, key, chatOf('Nobody', { model: 'oloid' }));

      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
      expect(backup.request(requestIdOf(response))?.calls).toBe(1);
      await expectUncharged(service, tenantId, 10_000);
    });
  });

  it.each([400, 413, 422])(
    'is not asked again, nor is another, when it refuses the request itself (%d)',
    async (status) => {
      const { key, tenantId } = await service.startTenant({ credits: 10_000 });
      service.provider.change({ fail: 'status', status });

      const response = await postChat(service.app, key, chatOf('Bad', { model: 'oloid' }));

      expect(response.status).toBe(400);
      expect(errorOf(response)).toMatchObject({ code: 'invalid_request' });
      expect(service.provider.request(requestIdOf(response))?.calls).toBe(1);
      expect(backup.stats().calls).toBe(0);
      await expectUncharged(service, tenantId, 10_000);
    },
  );
});
