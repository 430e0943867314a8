import { afterAll, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import request from 'supertest';

import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import { errorOf, expectUncharged } from '../../support/chat.ts';
import type { TestService } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const FLAGGED = 'parley-moderation-test';

const postTo = (service: TestService, key: string, body: object) =>
  request(service.app).post('/platform/v1/moderations').auth(key, { type: 'bearer' }).send(body);

describe('POST /moderations', () => {
  const service = useService();
  const post = (key: string, body: object) => postTo(service, key, body);

  it('gives the official client a verdict for each input', async () => {
    const { key } = await service.startTenant();
    const client = new OpenAI({ apiKey: key, baseURL: `${service.url}/platform/v1`, maxRetries: 0 });

    const { id, results } = await client.moderations.create({ input: ['What is a noun?', FLAGGED] });

    expect(id).toMatch(/^req_/);
    expect(results.map(({ flagged }) => flagged)).toEqual([false, true]);
    expect(results[0]?.categories.violence).toBe(false);
    expect(results[0]?.category_scores['violence/graphic']).toBe(0);
    expect(results[1]?.categories).toMatchObject({ test: true });
  });

  it.each([
    ['as one', 'parley-moder', 'ation-test'],
    ['as lines', 'Hi parley', 'moderation test'],
  ])('reads a text in parts %s', async (_how, ...parts) => {
    const { key } = await service.startTenant();
    const { body } = await post(key, { input: parts.map((text) => ({ type: 'text', text })) });
    expect(body.results).toMatchObject([{ flagged: true }]);
  });

  it('judges by the settings of the tenant', async () => {
    const { key } = await service.startTenant({ tenant: { moderation: { disabled: ['violence'] } } });
    const other = await service.startTenant();
    const input = [
      { type: 'text', text: 'I will kill' },
      { type: 'text', text: 'you tonight' },
    ];

    const [lenient, strict] = await Promise.all([post(key, { input }), post(other.key, { input })]);

    expect(lenient.body.results).toHaveLength(1);
    expect(lenient.body.results[0].categories.violence).toBe(false);
    expect(strict.body.results[0].category_scores).toEqual(lenient.body.results[0].category_scores);
  });

  it('costs nothing, not even where there are no credits, and counts as a request', async () => {
    const { tenantId, key } = await service.startTenant({ credits: 0, tenant: { rpm: 1 } });

    expect((await post(key, { input: 'Hi' })).status).toBe(200);
    expect(errorOf(await post(key, { input: 'Hi' }))).toMatchObject({ code: 'rpm_exceeded' });
    await expectUncharged(service, tenantId, 0);
  });

  it.each([
    ['no input', {}, 'input', 'is required'],
    ['an image', { input: [{ type: 'image_url', image_url: { url: 'https://a.test' } }] }, 'input[0]', 'type text'],
    ['tokens', { input: [1, 2] }, 'input', 'must be a text'],
    ['too many inputs', { input: Array(33).fill('a') }, 'input', '32'],
  ])('refuses %s by its name', async (_name, body, param, sentence) => {
    const { key } = await service.startTenant();
    const response = await post(key, body);

    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(errorOf(response)['message']).toContain(sentence);
  });

  it('refuses a body above 64 KiB', async () => {
    const { key } = await service.startTenant();

    expect((await post(key, { input: 'a'.repeat(65_536) })).status).toBe(413);
  });
});

describe('POST /moderations where an endpoint moderates', () => {
  const endpoint = createSimulatedProvider();
  const service = useService(async () => {
    const { url } = await endpoint.listen();
    return { env: { MODERATION_BACKEND: 'openai', MODERATION_BASE_URL: `${url}/v1`, MODERATION_TIMEOUT_MS: '500' } };
  });
  afterAll(async () => {
    await endpoint.close();
  });

  it("gives the endpoint's verdict, or none where it fails", async () => {
    const { key } = await service.startTenant();

    const { body } = await postTo(service, key, { input: ['Hi', FLAGGED] });
    expect(body.model).toBe('openai');
    expect(body).toMatchObject({ results: [{ flagged: false }, { flagged: true }] });
    endpoint.change({ moderation_status: 503 });
    expect(errorOf(await postTo(service, key, { input: 'Hi' }))).toMatchObject({ code: 'model_unavailable' });
  });
});
