import { randomFillSync } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';

import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import OpenAI from 'openai';
import request from 'supertest';

import { errorOf, expectUncharged, ledgerOf, requestIdOf } from '../../support/chat.ts';
import { postLines, resultsOf } from '../../support/batch-client.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

interface EmbeddingList {
  data: { index: number; embedding: number[] }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

const FLAGGED = 'parley-moderation-test';
const TEXTS = ['A noun names a thing.', 'A verb names an action.'];

const service = useService();
const tenant = useTenant(service);
afterEach(async () => {
  service.provider.restore();
  await service.setTargets('embedding', [{ provider: 'simulated', model: 'sim' }]);
});

const post = (body: object, key = tenant.key, headers: Record<string, string> = {}) =>
  request(service.app).post('/platform/v1/embeddings').auth(key, { type: 'bearer' }).set(headers).send(body);
const listOf = ({ body }: request.Response) => body as EmbeddingList;
const vectorsOf = (response: request.Response) => listOf(response).data.map(({ embedding }) => embedding);

describe('POST /embeddings', () => {
  it('gives a vector for each input in order, as numbers or as base64', async () => {
    const [numbers, coded] = await Promise.all([
      post({ model: 'embedding', input: TEXTS, dimensions: 8 }),
      post({ model: 'embedding', input: TEXTS, dimensions: 8, encoding_format: 'base64' }),
    ]);

    const { prompt_tokens: tokens } = listOf(numbers).usage;
    expect(numbers.body).toEqual({
      object: 'list',
      data: [0, 1].map((index) => ({ object: 'embedding', index, embedding: expect.any(Array) })),
      model: 'embedding',
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
    const decoded = (coded.body as { data: { embedding: string }[] }).data.map(({ embedding }) =>
      Array.from(new Float32Array(new Uint8Array(Buffer.from(embedding, 'base64')).buffer)),
    );
    expect(decoded.map(({ length }) => length)).toEqual([8, 8]);
    expect(vectorsOf(numbers).map((vector) => vector.map(Math.fround))).toEqual(decoded);
  });

  it('serves the official client', async () => {
    const client = new OpenAI({ apiKey: tenant.key, baseURL: `${service.url}/platform/v1`, maxRetries: 0 });
    const answer = await client.embeddings.create({ model: 'embedding', input: TEXTS });

    expect(answer.data.map(({ embedding }) => embedding.length)).toEqual([1_536, 1_536]);
  });

  it('reads lists of tokens as the text that they stand for', async () => {
    const [asText, asTokens, alone] = await Promise.all([
      post({ input: TEXTS, dimensions: 64 }),
      post({ input: TEXTS.map((text) => encode(text)), dimensions: 64 }),
      post({ input: encode(TEXTS[1] ?? ''), dimensions: 64 }),
    ]);

    expect(vectorsOf(asTokens)).toEqual(vectorsOf(asText));
    expect(vectorsOf(alone)).toEqual(vectorsOf(asText).slice(1));
    expect((await post({ input: [0, 100_255] })).status).toBe(200);
  });

  it('refuses tokens that stand for more text than a body may have', async () => {
    // 128 blanks each.
    const answer = await post({ input: Array.from({ length: 5 }, () => Array(7_000).fill(58_040)), dimensions: 64 });

    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'input' });
    expect(service.provider.request(requestIdOf(answer))).toBeUndefined();
  });

  it.each([
    ['of a test key', { key: { mode: 'test' } }],
    ['of a tenant with a budget', { tenant: { monthly_token_budget: 100_000 } }],
    ['of a tenant with credits', {}],
  ])('reads tokens that stand for more text than others: %s', async (_whose, options) => {
    const { key } = await service.startTenant(options);

    // 128 blanks each.
    expect((await post({ input: [58_040, 58_040, 58_040, 58_040], dimensions: 64 }, key)).status).toBe(200);
  });

  it('takes 2,048 inputs, and null for whatever is left out', async () => {
    const answer = await post({
      input: Array.from({ length: 2_048 }, (_none, index) => `text ${index}`),
      model: null,
      dimensions: 8,
      encoding_format: null,
      user: null,
    });

    expect(answer.status).toBe(200);
    expect(vectorsOf(answer)).toHaveLength(2_048);
  });

  it.each(['float', 'base64'])('gives 1,000 vectors of 1,536 dimensions (%s)', async (encoding) => {
    const answer = await post({
      input: Array.from({ length: 1_000 }, (_none, index) => `text ${index}`),
      encoding_format: encoding,
    });

    expect(answer.status).toBe(200);
    expect(vectorsOf(answer)).toHaveLength(1_000);
    expect(vectorsOf(answer).at(-1)).toHaveLength(encoding === 'float' ? 1_536 : 8_192);
  });

  it('names unknown fields', async () => {
    const answer = await post({ input: 'Hi', truncate: 'end' });

    expect(answer.headers['x-ignored-fields']).toBe('truncate');
  });
});

describe('a refused embedding', () => {
  it.each([
    ['no input', {}, 'input', 'is required'],
    ['an empty text', { input: '' }, 'input', 'must not be empty'],
    ['no texts', { input: [] }, 'input', 'is required'],
    ['an empty text among others', { input: ['a', ''] }, 'input[1]', 'must not be empty'],
    ['mixed inputs', { input: ['a', 1] }, 'input[1]', 'must be a text, like the inputs before it'],
    ['an empty list of tokens', { input: [[1], []] }, 'input[1]', 'must be a list of tokens'],
    ['a token that is none', { input: [[1, 100_256]] }, 'input[0][1]', 'a token of cl100k_base'],
    ['too many inputs', { input: Array(2_049).fill('a') }, 'input', '2048'],
    ['too many tokens', { input: Array(38).fill('abcd'.repeat(8_000)) }, 'input', '300000 tokens in all'],
    ['too many numbers', { input: Array(2_048).fill('a'), dimensions: 1_536 }, 'input', 'of so many dimensions'],
    ['a wrong format', { input: 'a', encoding_format: 'int8' }, 'encoding_format', 'must be one of'],
    ['wrong dimensions', { input: 'a', dimensions: 0 }, 'dimensions', 'greater than or equal to 1'],
  ])('%s: the sentence names the field', async (_name, body, param, sentence) => {
    const response = await post(body);

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    expect(errorOf(response)['message']).toContain(sentence);
  });

  it('without its scope is 403, and a chat model is 404 with the names of those that serve', async () => {
    const { key } = await service.startTenant({ key: { scopes: ['chat'] } });

    expect(errorOf(await post({ input: 'Hi' }, key))).toMatchObject({ code: 'endpoint_not_allowed' });
    const response = await post({ input: 'Hi', model: 'mobius' });
    expect(response.status).toBe(404);
    expect(errorOf(response)).toMatchObject({ code: 'model_not_found', param: 'model' });
    expect(errorOf(response)['message']).toContain('the models are embedding');
  });

  it('is moderated, as text and as tokens, and costs nothing', async () => {
    const { tenantId, key } = await service.startTenant({ credits: 1_000 });

    for (const input of [['Hello', FLAGGED], encode(FLAGGED)]) {
      const response = await post({ input }, key);
      expect(errorOf(response)).toMatchObject({ code: 'content_policy_violation' });
      expect(errorOf(response)['message']).toMatch(/^The input was flagged/);
    }
    await expectUncharged(service, tenantId, 1_000);
  });

  it('counts its vectors by their size in the tokens a minute, and not in the charge', async () => {
    const { key } = await service.startTenant({ tenant: { tpm: 1_000 } });
    const input = Array.from({ length: 20 }, (_none, index) => `${index}`);

    const answer = await post({ input }, key);
    const { headers } = await post({ input: 'Hi', dimensions: 8 }, key);

    expect(listOf(answer).usage.total_tokens).toBeLessThan(200);
    // A vector of 1,536 dimensions has 8,193 bytes as base64, of which 128 are a token.
    expect(Number(headers['x-ratelimit-remaining-tokens'])).toBe(0);
    expect(errorOf(await post({ input }, key))).toMatchObject({ code: 'tpm_exceeded' });
    await expect(waitFor(() => ledgerOf(service, answer), 'the ledger entry')).resolves.toMatchObject({
      promptTokens: listOf(answer).usage.prompt_tokens,
    });
  });

  it('is limited by requests, tokens and credits', async () => {
    const few = await service.startTenant({ tenant: { rpm: 1 } });
    const short = await service.startTenant({ tenant: { tpm: 1_000 } });
    const poor = await service.startTenant({ credits: 0 });

    await post({ input: 'Hi' }, few.key);
    expect(errorOf(await post({ input: 'Hi' }, few.key))).toMatchObject({ code: 'rpm_exceeded' });
    await post({ input: 'word '.repeat(600) }, short.key);
    expect(errorOf(await post({ input: 'word '.repeat(600) }, short.key))).toMatchObject({ code: 'tpm_exceeded' });
    expect(errorOf(await post({ input: 'Hi' }, poor.key))).toMatchObject({ code: 'insufficient_credits' });
  });
});

describe('an embedding, once made', () => {
  it('is charged for the tokens of its inputs, at the rate of its tier', async () => {
    const { key } = await service.startTenant();
    const answer = await post({ input: TEXTS }, key);
    const tokens = listOf(answer).usage.prompt_tokens;

    const entry = await waitFor(() => ledgerOf(service, answer), 'the ledger entry');
    expect(entry).toMatchObject({
      tier: 'embedding',
      endpoint: 'embeddings',
      promptTokens: tokens,
      completionTokens: 0,
      estimated: false,
      amountMicro: -tokens * 1_000_000,
    });
    const { body } = await apiOf(service, key)('get', '/usage?group_by=model&endpoint=embeddings');
    expect(JSON.stringify(body)).toContain('embedding');
  });

  it('is repeated under its Idempotency-Key and looked up by its id', async () => {
    const { key } = await service.startTenant();
    const headers = { 'Idempotency-Key': 'once' };
    const first = await post({ input: TEXTS, dimensions: 8 }, key, headers);
    const again = await post({ input: TEXTS, dimensions: 8 }, key, headers);

    expect(again.body).toEqual(first.body);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect((await post({ input: TEXTS, dimensions: 9 }, key, headers)).status).toBe(422);
    const { body } = await apiOf(service, key)('get', `/chat/${requestIdOf(first)}`);
    expect(body).toMatchObject({ status: 'completed', response: first.body });
  });

  it('leaves nothing where nothing is kept', async () => {
    const { key } = await service.startTenant({ tenant: { retention_seconds: 0 } });
    const answer = await post({ input: 'A secret of mine', dimensions: 8 }, key);

    expect(answer.status).toBe(200);
    const { status } = await apiOf(service, key)('get', `/chat/${requestIdOf(answer)}`);
    expect([404, 410]).toContain(status);
  });

  it('comes from a batch as from the endpoint', async () => {
    const { key } = await service.startTenant();
    const line = (customId: string, body: object) => ({
      custom_id: customId,
      method: 'POST',
      url: '/v1/embeddings',
      body,
    });
    const made = await postLines(service, key, [
      line('good', { model: 'embedding', input: TEXTS, dimensions: 8 }),
      line('bad', { input: '' }),
      line('unknown', { input: 'Hi', model: 'text-embedding-9' }),
    ]);
    const results = await waitFor(async () => {
      const lines = await resultsOf(service, key, String(made.body.id));
      return lines.length === 3 ? lines : undefined;
    }, 'the results');

    const direct = await post({ model: 'embedding', input: TEXTS, dimensions: 8 }, key);
    expect(results[0]).toMatchObject({ custom_id: 'good', response: direct.body });
    expect(results[1]).toMatchObject({ error: { code: 'invalid_request', param: 'body.input' } });
    expect(results[2]).toMatchObject({ error: { code: 'model_not_found' } });
  });
});

describe('providers of embeddings', () => {
  const { server } = useScriptedServer();
  const odd = () => ({ kind: 'openai', base_url: `${server.url}/v1`, api_key: 'k', max_retries: 0 });
  beforeAll(async () => {
    await service.setProvider({ kind: 'anthropic', base_url: 'https://api.anthropic.com/v1', api_key: 'k' }, 'claude');
  });

  /** The first answer of the scripted server, which is asked once its target is known to the worker. */
  async function answered(data: unknown, input = TEXTS): Promise<request.Response> {
    server.answer((res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data, model: 'm' }));
    });
    await service.setProvider(odd(), 'odd');
    await service.setTargets('embedding', [
      { provider: 'odd', model: 'm', priority: 1 },
      { provider: 'simulated', model: 'sim', priority: 2 },
    ]);
    return waitFor(async () => {
      const response = await post({ input, dimensions: 2, encoding_format: 'float', user: 'pupil-7' });
      return server.requests.length > 0 ? response : undefined;
    }, 'the call of the scripted server');
  }

  it('may send numbers, in any order and without a count', async () => {
    const response = await answered([
      { index: 1, embedding: [0.5, -2] },
      { index: 0, embedding: [0.1, 0] },
    ]);

    expect(vectorsOf(response)).toEqual([
      [Math.fround(0.1), 0],
      [0.5, -2],
    ]);
    expect(listOf(response).usage.prompt_tokens).toBeGreaterThan(5);
    const sent = JSON.parse(server.requests[0]?.body ?? '') as Record<string, unknown>;
    expect(sent).toMatchObject({ model: 'm', input: TEXTS, dimensions: 2, encoding_format: 'float' });
    expect(sent['user']).not.toContain('pupil');
  });

  it.each([
    ['too few vectors', [{ index: 0, embedding: [1] }]],
    ['no vectors', [{ embedding: 'no base64!' }, { embedding: null }]],
    ['numbers that no 32 bits hold', [{ embedding: [1e39, 1] }, { embedding: [1, 1] }]],
    ['what is no number', [{ embedding: Buffer.from(Float32Array.of(NaN, Infinity).buffer).toString('base64') }, {}]],
    ['base64 of no float', [{ embedding: 'A' }, { embedding: 'AAAA' }]],
  ])('that send %s are followed by the next one', async (_name, data) => {
    const response = await answered(data);

    expect(response.status).toBe(200);
    expect(vectorsOf(response).flat()).toEqual(Array(4).fill(expect.any(Number)));
  });

  it('may send many, which are looked up in pieces, between which others are served, and eight times at once', async () => {
    const numbers = () => Float32Array.from(randomFillSync(new Int32Array(1_536)), (number) => number / 2 ** 31);
    const data = Array.from({ length: 1_200 }, () => ({ embedding: Buffer.from(numbers().buffer).toString('base64') }));
    const made = await answered(data, Array<string>(1_200).fill('Hi'));
    // A connection of its own each: the kernel's buffers of one that has been read may hold a whole unread answer.
    const headers = { Authorization: `Bearer ${tenant.key}`, Connection: 'close' };
    const lookUp = () => fetch(`${service.url}/platform/v1/chat/${requestIdOf(made)}`, { headers });
    const delay = monitorEventLoopDelay({ resolution: 5 });

    delay.enable();
    const bytes = await (await lookUp()).bytes();
    delay.disable();

    expect(delay.max / 1e6).toBeLessThan(300);
    expect(JSON.parse(Buffer.from(bytes).toString())).toMatchObject({ status: 'completed', response: made.body });
    const unread = await Promise.all(Array.from({ length: 8 }, lookUp));
    expect((await lookUp()).status).toBe(429);
    await Promise.all(unread.map(async ({ body }) => body?.cancel()));
  });

  it('with a window that an input exceeds refuse it by its name', async () => {
    await service.setTargets('embedding', [{ provider: 'simulated', model: 'sim', context_window: 10 }]);
    // Workers read the table twice a second.
    const response = await waitFor(async () => {
      const tried = await post({ input: ['short', 'word '.repeat(11)] });
      return tried.status === 400 ? tried : undefined;
    }, 'the window to be in force');

    expect(errorOf(response)).toMatchObject({ code: 'context_length_exceeded', param: 'input[1]' });
    expect(errorOf(response)['message']).toContain('maximum context length is 10 tokens');
  });

  it('that send more than an answer holds make a 400 that says what to change, and are not asked again', async () => {
    const vector = Buffer.alloc(6 * 1024 * 1024).toString('base64');
    const response = await answered([0, 1].map((index) => ({ index, embedding: vector })));

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param: 'input' });
    expect(errorOf(response)['message']).toContain('send fewer inputs, or ask for fewer `dimensions`');
    expect(server.requests).toHaveLength(1);
    // The vectors are no tokens that nobody pays for.
    expect((await post({ input: 'Hi', dimensions: 2 })).status).toBe(200);
  });

  it('of the kind anthropic, and rates for completions, are refused', async () => {
    const put = (body: object) => service.admin('put', '/tiers/embedding', body);
    const rates = { prompt: 0.1, completion: 0 };

    const claude = await put({ rates, targets: [{ provider: 'claude', model: 'm' }] });
    expect(errorOf(claude)).toMatchObject({ code: 'invalid_request', param: 'targets[0].provider' });
    const dear = await put({ rates: { ...rates, completion: 1 }, targets: [{ provider: 'simulated', model: 'm' }] });
    expect(errorOf(dear)).toMatchObject({ code: 'invalid_request', param: 'rates.completion' });
  });
});
