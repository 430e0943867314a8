import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import {
  chatOf,
  errorOf,
  expectUncharged,
  postChat,
  postStream,
  requestIdOf,
  waitFor,
  waitUntil,
} from '../../support/chat.ts';
import type { RunningWorker } from '../../support/service.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';

const BREAKER = { open_ms: 60_000, max_open_ms: 60_000 };
let workers: RunningWorker[];
const backup = createSimulatedProvider({ defaults: { text: 'from the backup' } });
/**
 * `mobius` asks `simulated`, then `backup`; `oloid` asks `only`, and nobody else. `only` and `simulated` are one server.
 * Two workers, so that nothing works by chance in one of them alone.
 */
const service = useService({ workers: 0 });
const tenant = useTenant(service, { credits: 10_000_000 });
beforeAll(async () => {
  const { url } = await backup.listen();
  await service.setProvider({ max_retries: 0, first_token_timeout_ms: 1_000, timeout_ms: 2_000, breaker: BREAKER });
  await service.setProvider({ max_retries: 0, breaker: { open_ms: 1_000, max_open_ms: 60_000 } }, 'only');
  await service.setProvider({ base_url: `${url}/v1` }, 'backup');
  await service.setTargets('mobius', [
    { provider: 'simulated', model: 'sim', priority: 1 },
    { provider: 'backup', model: 'sim', priority: 2 },
  ]);
  await service.setTargets('oloid', [{ provider: 'only', model: 'sim' }]);
  workers = [await service.startWorker(), await service.startWorker()];
});
afterEach(async () => {
  for (const provider of [service.provider, backup]) {
    provider.restore();
    provider.reset();
  }
  await service.resetBreakers();
  await untilAllClosed();
});
afterAll(async () => {
  expect(service.log.errors()).toEqual([]);
  await backup.close();
});

interface BreakerResource {
  id: string;
  state: string;
  reason: string | null;
  recent_errors: Record<string, number>;
  recent_failures: number;
  since: number;
}

async function breakerOf(provider: string): Promise<BreakerResource> {
  // On a busy machine MongoDB may take longer than a call may take: then the administrator tries again.
  const { body } = await waitFor(async () => {
    const answer = await service.admin('get', '/breakers');
    return answer.status === 503 ? undefined : answer;
  }, 'an answer of the administration in time');
  const found = (body.data as BreakerResource[]).find(({ id }) => id === provider);
  if (found === undefined) throw new Error(`There is no breaker of ${provider}`);
  return found;
}

/** Resolves once both workers have heard that it is open, or that none is. */
async function untilOpen(provider: string): Promise<void> {
  const line = new RegExp(`^parley_breaker_state\\{.*provider="${provider}".*\\} 2$`, 'm');
  for (const worker of workers) {
    await waitUntil(async () => line.test(await worker.metrics()), `${provider} to be open`);
  }
}
async function untilAllClosed(): Promise<void> {
  for (const worker of workers) {
    await waitFor(
      async () => (/^parley_breaker_state\{.*\} [12]$/m.test(await worker.metrics()) ? undefined : true),
      'every breaker to be closed',
    );
  }
}

const ask = (model = 'mobius', text = 'Hello') => postChat(service.app, tenant.key, chatOf(text, { model }));

async function attemptsOf(response: { headers: object }) {
  const path = `/platform/v1/chat/${requestIdOf(response)}`;
  const answer = await fetch(service.url + path, { headers: { Authorization: `Bearer ${tenant.key}` } });
  const { timeline } = (await answer.json()) as {
    timeline: { attempts: { provider: string; model: string; outcome: string }[] };
  };
  return timeline.attempts.map(({ provider, outcome }) => [provider, outcome]);
}

describe('a provider whose breaker has opened', () => {
  it('is skipped without a call, and the timeline says so', async () => {
    service.provider.change({ fail: 'status', status: 500 });
    await Promise.all(Array.from({ length: 12 }, () => ask()));
    await untilOpen('simulated');
    const calls = service.provider.stats().calls;

    const responses = await Promise.all(Array.from({ length: 6 }, () => ask()));

    expect(service.provider.stats().calls).toBe(calls);
    for (const response of responses) expect(response.body.choices[0].message.content).toBe('from the backup');
    expect(await attemptsOf(responses[0] ?? { headers: {} })).toEqual([
      ['simulated', 'breaker_open'],
      ['backup', 'ok'],
    ]);
    expect(await breakerOf('simulated')).toMatchObject({ state: 'open', reason: 'status_500' });
  });

  it('is one event in the whole fleet: in the list, in the log and in the metrics', async () => {
    const before = service.log.lines.length;
    service.provider.change({ fail: 'status', status: 503 });
    await Promise.all(Array.from({ length: 30 }, () => ask()));
    await untilOpen('simulated');

    const opened = service.log.lines.slice(before).filter(({ message }) => message.includes('has opened'));
    expect(opened).toHaveLength(1);
    expect(opened[0]).toMatchObject({
      level: 'warn',
      fields: { provider: 'simulated', from: 'closed', to: 'open', reason: 'status_503' },
    });
    const { body } = await service.admin('get', '/breakers/events?limit=1');
    expect(body.data[0]).toMatchObject({
      type: 'breaker.opened',
      data: { provider: 'simulated', reason: 'status_503' },
    });
    const pages = await Promise.all(workers.map((worker) => worker.metrics()));
    expect(pages.join('\n')).toMatch(/parley_breaker_changes_total\{provider="simulated",from="closed",to="open"/);
  });

  it('opens for streams that are cut after their first text, too', async () => {
    service.provider.change({ text: 'one two three four', chunks: 4, fail: 'truncate', fail_after: 2 });

    await Promise.all(Array.from({ length: 12 }, () => postStream(service.app, tenant.key, chatOf('Cut'))));

    await untilOpen('simulated');
    expect(await breakerOf('simulated')).toMatchObject({ reason: 'connection_or_format' });
  });
});

describe('the only target of a tier', () => {
  it('is probed by one request when its pause is over, and has all the traffic when that succeeds', async () => {
    service.provider.change({ fail: 'status', status: 403 });
    await waitUntil(async () => (await ask('oloid')).status === 503, 'the failure');
    await untilOpen('only');
    service.provider.restore();
    service.provider.reset();
    service.provider.change({ first_token_ms: 400 });

    const statuses = new Set<number>();
    await waitFor(async () => {
      const responses = await Promise.all(Array.from({ length: 8 }, () => ask('oloid')));
      for (const { status } of responses) statuses.add(status);
      // While the probe is under way it is alone.
      if (responses.some(({ status }) => status === 503)) expect(service.provider.stats().calls).toBeLessThanOrEqual(1);
      return responses.every(({ status }) => status === 200) ? true : undefined;
    }, 'the traffic to be back');

    expect([...statuses].sort()).toEqual([200, 503]);
    expect(await breakerOf('only')).toMatchObject({ state: 'closed', reason: 'probe_succeeded' });
  });

  it('that is open is 503 with the time until its next probe, and costs nothing', async () => {
    const poor = await service.startTenant({ credits: 50_000 });
    service.provider.change({ fail: 'status', status: 401 });
    await service.setProvider({ max_retries: 0, breaker: BREAKER }, 'only');
    await waitFor(async () => {
      await service.resetBreakers();
      await ask('oloid');
      const { body } = await service.admin('get', '/breakers/events?limit=1');
      const { created_at: at, data } = body.data[0] as { created_at: number; data: { retry_at: number | null } };
      return data.retry_at !== null && data.retry_at - at >= 59 ? true : undefined;
    }, 'the workers to have the settings');
    await untilOpen('only');
    const calls = service.provider.stats().calls;

    const response = await postChat(service.app, poor.key, chatOf('Anybody?', { model: 'oloid' }));

    expect(response.status).toBe(503);
    expect(errorOf(response)).toMatchObject({ code: 'model_unavailable', type: 'overloaded_error' });
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(30);
    expect(Number(response.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(service.provider.stats().calls).toBe(calls);
    await expectUncharged(service, poor.tenantId, 50_000);
  });
});

describe('a change of the routes', () => {
  /** Who answers, asked by so many requests at once that both workers have some of them. */
  async function isServedBy(text: string): Promise<true | undefined> {
    const responses = await Promise.all(Array.from({ length: 16 }, () => ask('oloid')));
    const texts = responses.map(({ body }) => body.choices[0].message.content as string);
    return texts.every((answer) => answer === text) ? true : undefined;
  }

  it('is followed by every worker within a second, and so is the way back', async () => {
    service.provider.change({ text: 'from the only one' });
    const { body: before } = await service.admin('get', '/tiers/oloid');
    const startedAt = performance.now();

    await service.setTargets('oloid', [{ provider: 'backup', model: 'sim' }]);
    await waitFor(() => isServedBy('from the backup'), 'the new target');
    await service.admin('post', '/tiers/oloid/rollback', { version: before.version });
    await waitFor(() => isServedBy('from the only one'), 'the old target');

    // Twice one second is promised; a machine with other work may be late by the rest.
    expect(performance.now() - startedAt).toBeLessThan(6_000);
  });
});
