import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import {
  chatOf,
  choiceOf,
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
import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';

const FLAGGED = 'parley-moderation-test';
/** Longer than a window. */
const HARMLESS = 'Bridges carry roads over rivers, and people have built them for thousands of years. '.repeat(4);

/** The endpoint is a simulated provider of its own, so that it can fail while the model answers. */
describe('moderation by an endpoint', () => {
  const endpoint = createSimulatedProvider();
  const service = useService(async () => {
    const { url } = await endpoint.listen();
    return { env: { MODERATION_BACKEND: 'openai', MODERATION_BASE_URL: `${url}/v1`, MODERATION_TIMEOUT_MS: '500' } };
  });
  afterEach(() => {
    for (const provider of [service.provider, endpoint]) {
      provider.restore();
      provider.reset();
    }
  });
  afterAll(async () => {
    await endpoint.close();
  });

  async function timelineOf(key: string, response: { headers: object }) {
    const path = `/platform/v1/chat/${requestIdOf(response)}`;
    const { body } = await request(service.app).get(path).auth(key, { type: 'bearer' });
    return body.timeline as Record<string, unknown>;
  }

  it('refuses flagged messages before any provider is asked, and charges nothing', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf(`This is a ${FLAGGED}.`));

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'content_policy_violation' });
    expect(service.provider.stats().calls).toBe(0);
    expect(await timelineOf(key, response)).toMatchObject({
      moderated_at: expect.any(Number),
      moderation: { backend: 'openai', verdict: 'flagged_input', categories: ['test'] },
    });
    await expectUncharged(service, tenantId, 10_000);
  });

  it('lets a harmless conversation through, complete and streamed alike', async () => {
    service.provider.change({ text: HARMLESS, chunks: 40 });
    const { key } = await service.startTenant();

    const complete = await postChat(service.app, key, chatOf('Bridges?'));
    // The messages once, the complete answer once.
    expect(endpoint.stats().moderations).toBe(2);
    const streamed = await postStream(service.app, key, chatOf('Bridges?'));

    expect(complete.body.choices[0].message.content).toBe(HARMLESS);
    const events = parseSse(String(streamed.body));
    expect(textOf(events)).toBe(HARMLESS);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    expect(await timelineOf(key, streamed)).toMatchObject({ moderation: { backend: 'openai', verdict: 'passed' } });
    expect(await ledgerOf(service, streamed)).toMatchObject({ estimated: false, finishReason: 'stop' });
  });

  it('cuts a stream before the piece that is flagged, and charges what was shown', async () => {
    service.provider.change({ text: `${HARMLESS}${HARMLESS}a ${FLAGGED} and canary words`, chunks: 60, chunk_ms: 5 });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Go on'));

    const events = parseSse(String(response.body));
    expect(`${HARMLESS}${HARMLESS}`.startsWith(textOf(events))).toBe(true);
    expect(choiceOf(events.at(-2)?.chunk).finish_reason).toBe('content_filter');
    expect(events.at(-1)?.chunk).toBeUndefined();
    expect(String(response.body)).not.toContain('canary');
    expect(await timelineOf(key, response)).toMatchObject({
      moderation: { verdict: 'flagged_output', categories: ['test'] },
    });
    expect(await ledgerOf(service, response)).toMatchObject({ finishReason: 'content_filter', estimated: true });
  });

  it('does not show a complete answer that is flagged', async () => {
    service.provider.change({ text: `${HARMLESS} ${FLAGGED}` });
    const { key, tenantId } = await service.startTenant({ credits: 1_000_000 });

    const response = await postChat(service.app, key, chatOf('Go on'));

    expect(response.status).toBe(200);
    expect(response.body.choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'content_filter' });
    await expectUncharged(service, tenantId, 1_000_000);
  });

  it('follows the tenant’s thresholds and switched-off categories', async () => {
    const ask = chatOf('simulate-violence=0.4 simulate-hate=0.9');
    const strict = await service.startTenant({ tenant: { moderation: { thresholds: { violence: 0.3 } } } });
    const lax = await service.startTenant({ tenant: { moderation: { disabled: ['hate'] } } });

    const refused = await postChat(service.app, strict.key, ask);

    expect(errorOf(refused)['message']).toContain('hate, violence');
    expect((await postChat(service.app, lax.key, ask)).status).toBe(200);
  });

  it.each([
    ['is down', { moderation_status: 503 }],
    ['is too slow', { moderation_ms: 60_000 }],
    ['refuses us', { moderation_status: 401 }],
  ])('moderation by an endpoint fails closed where the endpoint %s', async (_what, settings) => {
    endpoint.change(settings);
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    for (const post of [postChat, postStream]) {
      const response = await post(service.app, key, chatOf('Hello'));

      expect(response.status).toBe(503);
      expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      expect(await timelineOf(key, response)).toMatchObject({ moderation: { verdict: 'unavailable' } });
    }
    expect(service.provider.stats().calls).toBe(0);
    await expectUncharged(service, tenantId, 10_000);
  });

  it('has the rest checked, too, that a provider sent before its stream failed', async () => {
    service.provider.change({ text: HARMLESS, chunks: 40, chunk_ms: 20, fail: 'truncate', fail_after: 39 });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Go on'));

    const events = parseSse(String(response.body));
    expect(events.at(-1)?.chunk).toMatchObject({ error: { code: 'model_unavailable' } });
    expect(HARMLESS.startsWith(textOf(events))).toBe(true);
    // One chunk of the text is missing.
    expect(textOf(events).length).toBeGreaterThan(HARMLESS.length * 0.9);
  });

  it('ends a stream with the typed error where the endpoint goes away, and shows nothing unchecked', async () => {
    service.provider.change({ text: HARMLESS + HARMLESS, chunks: 60, chunk_ms: 40 });
    const { key } = await service.startTenant();
    const response = postStream(service.app, key, chatOf('Go on')).then((answer) => answer);
    // The messages, then the first piece of the answer.
    while (endpoint.stats().moderations < 2) await new Promise((resolve) => setImmediate(resolve));

    endpoint.change({ moderation_status: 503 });

    const events = parseSse(String((await response).body));
    expect(events.at(-1)?.chunk).toMatchObject({
      choices: [{ delta: {}, finish_reason: 'error' }],
      error: { code: 'model_unavailable' },
    });
    expect(textOf(events).length).toBeGreaterThan(0);
    expect(textOf(events).length).toBeLessThan(2 * HARMLESS.length);
  });
});
