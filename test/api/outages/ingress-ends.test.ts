import { describe, expect, it } from '@jest/globals';

import { chatOf, postChat, waitFor, waitUntil } from '../../support/chat.ts';
import { startService } from '../../support/service.ts';
import { redisUrl, uniqueName } from '../../support/stores.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { useService, useStarted } from '../../support/use-service.ts';

/** The worker's rounds see it within seconds; a busy machine takes longer. */
const STOPPED_WITHIN_MS = 20_000;

/** docs/spec.md#unanswered-admissions. */
describe('an ingress that ends before Redis has heard that a call was answered 503', () => {
  const namespace = uniqueName('ends');
  const path = useStarted('path', () => openTcpProxy(redisUrl()));
  const service = useService({ namespace });

  it('leaves to the workers what is to be stopped, and nobody pays for it', async () => {
    const { tenantId, key } = await service.startTenant();
    const charges = () => service.models.ledger.countDocuments({ tenantId, type: 'usage' });
    const ingress = await startService({ namespace, isSetUp: true, workers: 0, env: { REDIS_URL: path.url } });
    try {
      ingress.redis.on('error', () => undefined);
      // From then on Redis knows the script.
      expect((await postChat(ingress.app, key, chatOf('Known'))).status).toBe(200);
      await waitUntil(async () => (await charges()) === 1, 'the charge');
      service.provider.reset();
      // Longer than the test: it does not end by itself.
      service.provider.change({ chunks: 600, chunk_ms: 100, tokens: 600 });
      void path.cutNextReply('Untold').then(() => {
        path.set('refuse');
      });

      expect((await postChat(ingress.app, key, chatOf('Untold'))).status).toBe(503);
    } finally {
      await ingress.close();
    }
    const called = () => (service.provider.stats().calls > 0 ? true : undefined);
    await waitFor(called, 'the call of the provider');
    await waitUntil(() => service.provider.stats().in_flight === 0, 'its end', STOPPED_WITHIN_MS);

    const { held, pending } = await service.redis.hgetall(service.keyspace.shard(0).account(tenantId));
    expect([held ?? '0', pending ?? '0']).toEqual(['0', '0']);
    expect(await charges()).toBe(1);
  });
});
