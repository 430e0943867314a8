import { setImmediate as nextTurn } from 'node:timers/promises';

import { afterEach, expect, it, jest } from '@jest/globals';

import type { WebhookJob } from '../../../../shared/contracts/jobs.ts';
import { createCloser } from '../../../../shared/lifecycle/closer.ts';
import { createServeWebhook, deferClosing } from '../../../../workers/webhooks/start-webhooks.ts';

afterEach(() => {
  jest.useRealTimers();
});

it('a tenant has sixteen places of a queue, also where its jobs begin at once', async () => {
  const receivers = Promise.withResolvers<'none'>();
  const called = new Set<string>();
  const handedOn: WebhookJob[] = [];
  const { serve } = createServeWebhook({
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

/** A worker that stops while its receiver takes so long for an attempt. */
async function stopDuring(attemptMs: number) {
  jest.useFakeTimers();
  const events: string[] = [];
  const failed: string[] = [];
  const closer = createCloser((name) => failed.push(name));
  closer.defer('stores', () => events.push('stores closed'));
  const stopping = new AbortController();
  const { serve, ended } = createServeWebhook({
    webhooks: { find: () => Promise.resolve(undefined) },
    queue: { add: () => Promise.resolve() },
    deliverNext: async () => {
      await new Promise((resolve) => setTimeout(resolve, attemptMs));
      events.push('attempt recorded');
      return 'done';
    },
    clock: { now: Date.now },
    stopping: stopping.signal,
  });
  deferClosing(closer, { stopping, ended, close: () => Promise.resolve() });
  // What else closes has used up the time that is shared.
  closer.defer('others', () => new Promise(() => undefined), { limitMs: 8_000 });
  void serve('webhooks', { tenantId: 'ten_1', webhookId: 'whk_1' });
  await jest.advanceTimersByTimeAsync(0);

  const closed = closer.close();
  await jest.advanceTimersByTimeAsync(8_000 + 17_000);
  await closed;
  return { events, failed };
}

it('a worker that stops lets attempts under way end, as long as they may take, and begins no other', async () => {
  const { events, failed } = await stopDuring(20_000);

  expect(events).toEqual([...Array.from({ length: 4 }, () => 'attempt recorded'), 'stores closed']);
  expect(failed).toEqual(['others']);
});

it('a worker that stops waits no longer than an attempt can take', async () => {
  const { events, failed } = await stopDuring(60_000);

  expect(events).toEqual(['stores closed']);
  expect(failed).toEqual(['others', 'attempts for webhooks']);
});
