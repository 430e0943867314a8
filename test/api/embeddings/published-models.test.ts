import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, errorOf, parseSse, postChat, readText, requestIdOf } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const service = useService();
const tenant = useTenant(service);
afterEach(async () => {
  await service.models.publishedModels.deleteMany({});
});

const call: ReturnType<typeof apiOf> = (...parts) => apiOf(service, tenant.key)(...parts);
const publish = (name: string, body: object) => service.admin('put', `/models/${encodeURIComponent(name)}`, body);
const listed = async () => ((await call('get', '/models')).body as { data: { id: string }[] }).data.map(({ id }) => id);
const untilListed = (name: string, isListed = true) =>
  waitFor(async () => ((await listed()).includes(name) === isListed ? true : undefined), `the list to know ${name}`);

describe('a published name', () => {
  it('is found under its slash, encoded or not', async () => {
    await publish('openai/gpt-4o', { tier: 'mobius' });
    await untilListed('openai/gpt-4o');

    for (const path of ['/models/openai/gpt-4o', '/models/openai%2Fgpt-4o'])
      expect((await call('get', path)).body).toMatchObject({ id: 'openai/gpt-4o' });
    expect(errorOf(await call('get', '/models/openai/gpt-9'))).toMatchObject({ code: 'model_not_found' });
  });

  it('is listed, serves complete and streamed answers, and is their model', async () => {
    expect((await publish('gpt-4o-mini', { tier: 'oloid' })).status).toBe(201);
    await untilListed('gpt-4o-mini');

    const { body } = await call('get', '/models/gpt-4o-mini');
    expect(body).toMatchObject({ id: 'gpt-4o-mini', object: 'model', owned_by: 'parley' });
    const chat = chatOf('Hi', { model: 'gpt-4o-mini' });
    const whole = await call('post', '/chat/completions', chat);
    expect(whole.body).toMatchObject({ model: 'gpt-4o-mini' });
    const streamed = await request(service.app)
      .post('/platform/v1/chat/completions')
      .auth(tenant.key, { type: 'bearer' })
      .buffer(true)
      .parse(readText)
      .send({ ...chat, stream: true });
    expect(parseSse(String(streamed.body))[0]?.chunk).toMatchObject({ model: 'gpt-4o-mini' });
    const found = await call('get', `/chat/${requestIdOf(whole)}`);
    expect(found.body).toMatchObject({ response: { model: 'gpt-4o-mini' } });
    const entry = await waitFor(
      () =>
        service.models.ledger
          .findOne({ requestId: requestIdOf(whole) })
          .lean()
          .then((row) => row ?? undefined),
      'the ledger entry',
    );
    expect(entry).toMatchObject({ tier: 'oloid' });
  });

  it('may lead to one target alone', async () => {
    await service.setTargets('mobius', [
      { provider: 'simulated', model: 'sim?text=first', priority: 1 },
      { provider: 'simulated', model: 'sim?text=second', priority: 2 },
    ]);
    const target = { provider: 'simulated', model: 'sim?text=second' };
    expect((await publish('meta/llama-3', { tier: 'mobius', target })).body).toMatchObject({ target });
    await untilListed('meta/llama-3');

    const { body } = await waitFor(async () => {
      const answer = await call('post', '/chat/completions', chatOf('Hi', { model: 'meta/llama-3' }));
      // A worker that does not know the name yet calls any target of the tier.
      return answer.text.includes('second') ? answer : undefined;
    }, 'the worker to know the name');
    expect(body).toMatchObject({ model: 'meta/llama-3' });
    expect((await call('post', '/chat/completions', chatOf('Hi', { model: 'mobius' }))).body).toMatchObject({
      choices: [{ message: { content: 'first' } }],
    });
    const wrong = await publish('other', { tier: 'mobius', target: { ...target, model: 'none' } });
    expect(errorOf(wrong)).toMatchObject({ code: 'invalid_request', param: 'target' });
  });

  it('of the tier embedding serves embeddings only', async () => {
    await publish('text-embedding-3-small', { tier: 'embedding' });
    await untilListed('text-embedding-3-small');
    const model = 'text-embedding-3-small';

    expect((await call('post', '/embeddings', { input: 'Hi', model })).body).toMatchObject({ model });
    const chat = await call('post', '/chat/completions', chatOf('Hi', { model }));
    expect(errorOf(chat)['message']).toContain('does not serve this endpoint; the models are mobius, oloid.');
  });

  it('is withdrawn and audited', async () => {
    await publish('gpt-4o', { tier: 'mobius' });
    await untilListed('gpt-4o');
    const removed = await service.admin('delete', '/models/gpt-4o');
    expect(removed.body).toEqual({ id: 'gpt-4o', object: 'published_model', deleted: true });
    await untilListed('gpt-4o', false);

    expect((await service.admin('delete', '/models/gpt-4o')).status).toBe(404);
    expect((await service.admin('get', '/models/gpt-4o')).status).toBe(404);
    const { body } = await service.admin('get', '/audit_log?limit=3');
    expect(JSON.stringify(body)).toContain('gpt-4o');
  });

  it.each(['mobius', 'embedding', 'with space', '-x', 'a'.repeat(129), 'quote"'])('cannot be %p', async (name) => {
    expect(errorOf(await publish(name, { tier: 'mobius' }))).toMatchObject({ code: 'invalid_request', param: 'name' });
  });

  it('is needed for any other name: 404 tells which there are, and /chat knows the tiers only', async () => {
    const response = await call('post', '/chat/completions', chatOf('Hi', { model: 'gpt-9' }));

    expect(response.status).toBe(404);
    expect(errorOf(response)).toMatchObject({ code: 'model_not_found', param: 'model' });
    expect(errorOf(response)['message']).toBe('The model `gpt-9` does not exist; the models are mobius, oloid.');
    const chat = await postChat(service.app, tenant.key, chatOf('Hi', { model: 'embedding' }));
    expect(errorOf(chat)).toMatchObject({ code: 'invalid_request', param: 'model' });
    expect(errorOf(await call('get', '/models/gpt-9'))).toMatchObject({ code: 'model_not_found' });
  });
});
