import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import {
  chatOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  requestIdOf,
  textOf,
  waitFor,
} from '../../support/chat.ts';
import { postLines } from '../../support/batch-client.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTwoProtocols } from '../../support/two-protocols.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0 });
const { say, asked } = useTwoProtocols(service);
afterEach(() => service.resetBreakers());

const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const FORMAT = { type: 'json_schema', json_schema: { name: 'dog', strict: true, schema: SCHEMA } };
const FITS = '{"name":"Rex","age":3}';
const MISFIT = '{"name":"Rex","age":"three"}';
const SAID = { prompt: 90, completion: 10 };

const bodyOf = (fields: object = {}) => chatOf('A dog', { response_format: FORMAT, ...fields });
const post = (key: string, fields: object = {}) =>
  request(service.app).post('/platform/v1/chat/completions').auth(key, { type: 'bearer' }).send(bodyOf(fields));

it('an answer with a schema is repaired in what a small window leaves, where no max_tokens is named', async () => {
  const window = { context_window: 1_000, max_output_tokens: 1_000 };
  await service.setTargets('mobius', [{ provider: 'completions', model: 'small', ...window }]);
  const { key } = await service.startTenant();
  const modelAsked = async () => {
    say({ ...SAID, texts: [MISFIT] }, { ...SAID, texts: [FITS] });
    const response = await post(key, { model: 'mobius' });
    return asked()[0]?.['model'] === 'small' ? response : undefined;
  };

  const { body } = await waitFor(modelAsked, 'the small target');

  expect(body.choices[0].message.content).toBe(FITS);
  expect(asked()[1]?.['messages']).toContainEqual({ role: 'assistant', content: MISFIT });
  await service.setTargets('mobius', [{ provider: 'completions', model: 'm' }]);
  await service.routesKnown();
});

describe.each([
  ['that enforces it', 'mobius'],
  ['that is told of it', 'oloid'],
])('an answer with a schema, by a model %s', (_how, model) => {
  it.each([FITS, `\`\`\`json\n${FITS}\n\`\`\``])('is the object alone: %j', async (text) => {
    say({ ...SAID, texts: [text] });
    const { key } = await service.startTenant();

    const { body } = await post(key, { model });

    expect(body.choices[0]).toMatchObject({ message: { content: FITS }, finish_reason: 'stop' });
    expect(asked()).toHaveLength(1);
  });

  it('is repaired once, and the caller pays for one prompt and the answer that fits', async () => {
    say({ ...SAID, texts: [MISFIT] }, { prompt: 130, completion: 12, texts: [FITS] });
    const { key } = await service.startTenant();

    const response = await post(key, { model });

    expect(response.body.choices[0].message.content).toBe(FITS);
    expect(response.body.usage).toMatchObject({ prompt_tokens: 90, completion_tokens: 12 });
    expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: 90, completionTokens: 12 });
    const messages = asked()[1]?.['messages'] as { role: string; content: string }[];
    expect(messages.slice(-2)).toEqual([
      { role: 'assistant', content: MISFIT },
      { role: 'user', content: expect.stringContaining('#/age') },
    ]);
  });

  it('is model_unavailable if it does not fit even then, and nothing is charged', async () => {
    say({ ...SAID, texts: [MISFIT] });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await post(key, { model });

    expect(response.status).toBe(503);
    expect(errorOf(response)).toMatchObject({ code: 'model_unavailable', message: expect.stringContaining('#/age') });
    expect(asked()).toHaveLength(2);
    await expectUncharged(service, tenantId, 10_000);
  });

  it('passes as it is where max_tokens has cut it', async () => {
    say({ ...SAID, texts: ['{"name":'], finish: 'length' });
    const { key } = await service.startTenant();

    const { body } = await post(key, { model });

    expect(body.choices[0]).toMatchObject({ message: { content: '{"name":' }, finish_reason: 'length' });
  });

  it('streams as it comes, and ends with an error if it does not fit', async () => {
    const { key } = await service.startTenant();

    say({ ...SAID, texts: ['{"name":"Rex",', '"age":3}'] });
    const good = parseSse((await post(key, { model, stream: true })).text);
    say({ ...SAID, texts: [MISFIT] });
    const bad = parseSse((await post(key, { model, stream: true })).text);

    expect(textOf(good)).toBe(FITS);
    expect(good.at(-1)?.chunk).toBeUndefined();
    expect(textOf(bad)).toBe(MISFIT);
    expect(bad.at(-1)?.chunk).toMatchObject({ error: { code: 'model_unavailable' } });
    expect(asked()).toHaveLength(1);
  });

  it('is repaired in the line of a batch', async () => {
    say({ ...SAID, texts: [MISFIT] }, { ...SAID, texts: [FITS] });
    const { key } = await service.startTenant();
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: bodyOf({ model }) };

    const { body } = await postLines(service, key, [line]);

    const text = await waitFor(async () => {
      const results = await apiOf(service, key)('get', `/batches/${String(body.id)}/results`);
      return results.text === '' ? undefined : results.text;
    }, 'the result of the line');
    expect(text).toContain(JSON.stringify(FITS));
  });
});

describe('a schema', () => {
  it('goes to a provider of the same protocol as it came, and into the instruction of another', async () => {
    const { key } = await service.startTenant();

    say({ ...SAID, texts: [FITS] });
    await post(key, { model: 'mobius' });
    expect(asked()[0]).toMatchObject({ response_format: FORMAT, messages: [{ role: 'user', content: 'A dog' }] });

    say({ ...SAID, texts: [FITS] });
    await post(key, { model: 'oloid' });
    expect(asked()[0]?.['system']).toContain(JSON.stringify(SCHEMA));
  });

  it('is refused with its path before anything is paid', async () => {
    say({ ...SAID, texts: [FITS] });
    const { key } = await service.startTenant();
    const schema = { ...SCHEMA, required: ['name'] };

    const response = await post(key, {
      response_format: { ...FORMAT, json_schema: { ...FORMAT.json_schema, schema } },
    });

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ param: 'response_format.json_schema.schema.required' });
    expect(asked()).toHaveLength(0);
  });

  it('makes another request under an Idempotency-Key', async () => {
    say({ ...SAID, texts: [FITS] });
    const { key } = await service.startTenant();
    await post(key).set('Idempotency-Key', 'one');

    expect((await post(key).set('Idempotency-Key', 'one')).headers['idempotent-replayed']).toBe('true');
    expect((await post(key, { response_format: null }).set('Idempotency-Key', 'one')).status).toBe(422);
  });

  it('counts what a repair costs towards the unpaid tokens, and what is paid at one prompt', async () => {
    say({ ...SAID, texts: [MISFIT] }, { prompt: 130, completion: 12, texts: [FITS] });
    const { key, tenantId } = await service.startTenant();

    const response = await post(key);
    await ledgerOf(service, response);

    // The first call's 90 and 10, and the 40 by which the second prompt was longer.
    const unpaid = await service.redis.hget(service.keyspace.shard(0).account(tenantId), 'unpaid');
    expect(unpaid?.split(' ')[1]).toBe('140');
    expect(requestIdOf(response)).toMatch(/^req_/);
  });
});
