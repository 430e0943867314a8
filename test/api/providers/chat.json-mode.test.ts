import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';

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

describe('json_mode', () => {
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    await service.setProvider({ max_retries: 0 });
    await service.startWorker();
  });
  afterEach(() => {
    service.provider.restore();
    service.provider.reset();
  });

  it('answers with a string that parses as a JSON object', async () => {
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('As JSON', { json_mode: true }));

    expect(JSON.parse(response.body.choices[0].message.content)).toEqual({ answer: expect.any(String) });
    expect(service.provider.request(requestIdOf(response))?.calls).toBe(1);
  });

  it('asks once more for an answer that is none, and charges only the one that is', async () => {
    service.provider.change({ json: 'invalid_once' });
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('As JSON', { json_mode: true }));

    expect(response.status).toBe(200);
    expect(() => JSON.parse(response.body.choices[0].message.content) as unknown).not.toThrow();
    const counted = service.provider.request(requestIdOf(response));
    expect(counted?.calls).toBe(2);
    const { usage } = response.body;
    expect(await ledgerOf(service, response)).toMatchObject({
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
    });
    expect(usage.prompt_tokens).toBe((counted?.prompt_tokens ?? 0) / 2);
  });

  it('is model_unavailable when the second answer is none either, and nothing is charged', async () => {
    service.provider.change({ json: 'invalid' });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await postChat(service.app, key, chatOf('As JSON', { json_mode: true }));

    expect(response.status).toBe(503);
    expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
    expect(service.provider.request(requestIdOf(response))?.calls).toBe(2);
    await expectUncharged(service, tenantId, 10_000);
  });

  it('lets an answer be unparsable that max_tokens has cut', async () => {
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('As JSON', { json_mode: true, max_tokens: 3 }));

    expect(response.status).toBe(200);
    expect(response.body.choices[0].finish_reason).toBe('length');
    expect(service.provider.request(requestIdOf(response))?.calls).toBe(1);
  });

  it('json_mode passes a stream through as it comes', async () => {
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('As JSON', { json_mode: true }));

    const events = parseSse(String(response.body));
    expect(JSON.parse(textOf(events))).toEqual({ answer: expect.any(String) });
    expect(events.at(-1)?.chunk).toBeUndefined();
  });

  it('ends a stream that ends unparsable with the typed error, charged as the provider counted it', async () => {
    service.provider.change({ json: 'invalid' });
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('As JSON', { json_mode: true }));

    const events = parseSse(String(response.body));
    const counted = service.provider.request(requestIdOf(response));
    expect(textOf(events)).toMatch(/^\{"answer":/);
    expect(events.at(-1)?.chunk).toMatchObject({
      choices: [{ delta: {}, finish_reason: 'error' }],
      error: { code: 'model_unavailable' },
      usage: { prompt_tokens: counted?.prompt_tokens, completion_tokens: counted?.completion_tokens },
    });
    expect(counted?.calls).toBe(1);
    expect(await ledgerOf(service, response)).toMatchObject({ estimated: false, finishReason: 'error' });
  });
});
