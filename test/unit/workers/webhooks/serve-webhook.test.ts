import { setImmediate as nextTurn } from 'node:timers/promises';

import { expect, it } from '@jest/globals';

import type { WebhookJob } from '../../../../shared/contracts/jobs.ts';
import { createServeWebhook } from '../../../../workers/webhooks/serve-webhook.ts';

it('a tenant has sixteen places of a queue, also where its jobs begin at once', async () => {
  const receivers = Promise.withResolvers<'none'>();
  const called = new Set<string>();
  const handedOn: WebhookJob[] = [];
  const serve = createServeWebhook({
    // As a look-up does, it answers all that were asked for together in one turn.
    webhooks: { find: () => nextTurn(undefined) },
    queue: {
      add: (_name, job) => {
        handedOn.push(job);
        return Promise.resolve();
      },
    },
    deliverNext: (_tenantId, webhookId) => {
      called.add(webhookId);
      return receivers.promise;
    },
    clock: { now: Date.now },
    stopping: new AbortController().signal,
  });

  const jobs = Array.from({ length: 40 }, (_, index) => ({ tenantId: 'ten_1', webhookId: `whk_${index}` }));
  const served = jobs.map((job) => serve('webhooks', job));
  const other = serve('webhooks', { tenantId: 'ten_2', webhookId: 'whk_other' });
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();

  expect(handedOn).toEqual(jobs.slice(16));
  expect([...called]).toEqual([...jobs.slice(0, 16).map(({ webhookId }) => webhookId), 'whk_other']);
  receivers.resolve('none');
  await Promise.all([...served, other]);
  await serve('webhooks', { tenantId: 'ten_1', webhookId: 'whk_next' });
  expect(called).toContain('whk_next');
});
