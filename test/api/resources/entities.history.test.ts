import { beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, requestIdOf, waitFor } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
const service = useService({ workers: 0 });
const tenant = useTenant(service);
const api = useApi(service, tenant);
beforeAll(async () => {
  // `oloid` takes long enough to delete something meanwhile.
  await service.setTargets('oloid', [
    { provider: 'simulated', model: 'sim?first_token_ms=1500', context_window: 128_000 },
  ]);
  await service.startWorker();
});

const say = (entity_id: string, content: string, more: object = {}) =>
  postChat(service.app, tenant.key, chatOf(content, { entity_id, ...more }));

/** Sends a request that runs on; resolves once the provider is at work. */
async function begin(entityId: string): Promise<() => Promise<void>> {
  const { status, body } = await say(entityId, 'slow', { model: 'oloid' }).set('Prefer', 'respond-async');
  expect(status).toBe(202);
  await waitFor(() => service.provider.request(String(body.id)), 'the provider call');
  return async () => {
    await waitFor(async () => {
      const request = await api('get', `/chat/${String(body.id)}`);
      return request.body.status === 'completed' ? true : undefined;
    }, 'the end of the request');
  };
}

const contents = async (entityId: string) => {
  const { body } = await api('get', `/entities/${entityId}/history?order=asc&limit=100`);
  return (body.data as { role: string; content: string }[])
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content);
};

describe('the history of an entity', () => {
  it('has the messages of its requests, with their place', async () => {
    const first = await say('reader', 'One');
    const second = await say('reader', 'Two');

    const { body } = await api('get', '/entities/reader/history?order=asc');

    const ids = [first, first, second, second].map(requestIdOf);
    expect(body).toMatchObject({ object: 'list', has_more: false });
    expect(body.data).toEqual(
      ['user', 'assistant', 'user', 'assistant'].map((role, index) => ({
        id: `${String(ids[index]).replace('req_', 'msg_')}_${1 - (index % 2)}`,
        object: 'entity.message',
        created_at: expect.any(Number),
        role,
        content: role === 'user' ? (index === 0 ? 'One' : 'Two') : expect.any(String),
        request_id: ids[index],
      })),
    );
    expect(Math.abs(Number(body.data[0].created_at) - Date.now() / 1000)).toBeLessThan(60);
  });

  it('the history of an entity is read in pages, newest first', async () => {
    await say('pages', 'One');
    await say('pages', 'Two');

    const first = await api('get', '/entities/pages/history?limit=3');
    const second = await api('get', `/entities/pages/history?limit=3&after=${String(first.body.last_id)}`);

    expect(first.body).toMatchObject({ has_more: true });
    expect(second.body.data).toMatchObject([{ content: 'One' }]);
    expect(refusalOf(await api('get', '/entities/pages/history?after=msg_1'))).toMatchObject({
      status: 400,
      param: 'after',
    });
  });

  it('is forgotten when it is deleted; the entity stays', async () => {
    await api('put', '/entities/short', { subject: 'Biology' });
    await say('short', 'One');

    const response = await api('delete', '/entities/short/history');

    expect(response.body).toEqual({ id: 'short', object: 'entity.history', deleted: true });
    expect(await contents('short')).toEqual([]);
    expect((await api('get', '/entities/short')).body).toMatchObject({ subject: 'Biology' });
    await say('short', 'Two');
    expect(await contents('short')).toEqual(['Two']);
  });

  it('the history of an entity stays when the entity is replaced', async () => {
    await say('replaced', 'One');
    await api('put', '/entities/replaced', { name: 'Ada' });
    expect(await contents('replaced')).toEqual(['One']);
  });
});

describe('a request in flight', () => {
  it('a request in flight does not bring a deleted entity back', async () => {
    await say('deleted', 'before');
    const end = await begin('deleted');

    expect((await api('delete', '/entities/deleted')).status).toBe(200);
    await end();

    expect((await api('get', '/entities/deleted')).status).toBe(404);
  });

  it('does not make an entity whose deletion was asked for before it was there', async () => {
    const end = await begin('unborn');

    expect((await api('delete', '/entities/unborn')).status).toBe(404);
    await end();

    expect((await api('get', '/entities/unborn')).status).toBe(404);
  });

  it('tells nothing to the entity that was made anew meanwhile', async () => {
    await say('anew', 'before');
    const end = await begin('anew');

    await api('delete', '/entities/anew');
    await say('anew', 'after');
    await end();

    expect(await contents('anew')).toEqual(['after']);
  });

  it('a request in flight does not bring a deleted history back', async () => {
    await say('cleared', 'before');
    const end = await begin('cleared');

    await api('delete', '/entities/cleared/history');
    await end();

    expect(await contents('cleared')).toEqual([]);
  });

  it('a request in flight is remembered where nothing was deleted', async () => {
    const end = await begin('kept');
    await end();
    expect(await contents('kept')).toEqual(['slow']);
  });
});

describe('where a tenant has as many entities as it may', () => {
  it('a new one is 409 conflict, in chat before any provider is asked; those that are there serve on', async () => {
    const { key, tenantId } = await service.startTenant();
    const call = apiOf(service, key);
    await call('put', '/entities/known', { name: 'Ada' });
    await service.models.entityCounts.updateOne({ _id: `${tenantId} live` }, { $set: { entities: 1_000_000 } });
    const chat = (entity_id: string) => postChat(service.app, key, chatOf('Hi', { entity_id }));
    const calls = () => service.provider.stats().calls;
    const before = calls();

    for (const refused of [await call('put', '/entities/new', {}), await chat('new')])
      expect(refusalOf(refused)).toMatchObject({ status: 409, code: 'conflict', param: 'entity_id' });

    expect(calls()).toBe(before);
    expect((await chat('known')).status).toBe(200);
    expect((await call('delete', '/entities/known')).status).toBe(200);
    expect((await call('put', '/entities/new', {})).status).toBe(201);
  });
});
