import { beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, ledgerOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
let testKeyId: string;
/** In the order in which they were booked: live, live with an entity, streamed, with a test key. */
let ids: string[];
const service = useService();
const tenant = useTenant(service);
const api = useApi(service, tenant);
beforeAll(async () => {
  const testKey = await makeKey(api, { mode: 'test' });
  testKeyId = testKey.id;
  ids = [];
  const sends = [
    () => postChat(service.app, tenant.key, chatOf('One')),
    () => postChat(service.app, tenant.key, chatOf('Two', { entity_id: 'pupil/1', model: 'oloid' })),
    () => postStream(service.app, tenant.key, chatOf('Three')),
    () => postChat(service.app, testKey.value, chatOf('Four')),
  ];
  for (const send of sends) {
    const response = await send();
    await ledgerOf(service, response);
    ids.push(requestIdOf(response));
  }
});

const listed = async (query: string) => {
  const { body } = await api('get', `/usage/requests?${query}`);
  return (body.data as { id: string }[]).map(({ id }) => id);
};

describe('GET /usage/requests', () => {
  it('lists what single requests have used and cost', async () => {
    const { body } = await api('get', '/usage/requests?order=asc');

    expect(body).toMatchObject({ object: 'list', has_more: false, first_id: ids[0], last_id: ids[3] });
    const [first, second, third, fourth] = body.data as Record<string, number>[];
    expect(second).toEqual({
      id: ids[1],
      object: 'usage.request',
      created_at: expect.any(Number),
      settled_at: expect.any(Number),
      key_id: tenant.keyId,
      mode: 'live',
      endpoint: 'chat',
      model: 'oloid',
      entity_id: 'pupil/1',
      prompt_tokens: expect.any(Number),
      completion_tokens: expect.any(Number),
      total_tokens: (second?.['prompt_tokens'] ?? 0) + (second?.['completion_tokens'] ?? 0),
      cached_tokens: 0,
      cache_write_tokens: 0,
      prompt_audio_tokens: 0,
      reasoning_tokens: 0,
      completion_audio_tokens: 0,
      credits: 4 * (second?.['total_tokens'] ?? 0),
      estimated: false,
      finish_reason: 'stop',
    });
    expect(first).toMatchObject({ model: 'mobius', entity_id: null, credits: first?.['total_tokens'] });
    expect(third).toMatchObject({ endpoint: 'chat.stream' });
    expect(fourth).toMatchObject({ mode: 'test', key_id: testKeyId, credits: 0 });
    expect(fourth?.['total_tokens']).toBeGreaterThan(0);
  });

  it('GET /usage/requests gives pages, newest first', async () => {
    const first = await listed('limit=3');
    const second = await listed(`limit=3&after=${String(first.at(-1))}`);
    expect([...first, ...second]).toEqual(ids.toReversed());
  });

  it.each<[string, () => string, number[]]>([
    ['a key', () => `key_id=${testKeyId}`, [3]],
    ['two keys', () => `key_id=${testKeyId}&key_id=${tenant.keyId}`, [0, 1, 2, 3]],
    ['an entity', () => 'entity_id=pupil%2F1', [1]],
    ['a model', () => 'model=mobius', [0, 2, 3]],
    ['a mode', () => 'mode=live', [0, 1, 2]],
    ['several things', () => 'mode=live&model=mobius', [0, 2]],
    ['nobody', () => 'entity_id=nobody', []],
  ])('GET /usage/requests has only what is about %s', async (_what, queryOf, expected) => {
    expect(await listed(`order=asc&${queryOf()}`)).toEqual(expected.map((index) => ids[index]));
  });

  it('has no grants, and nothing of another tenant', async () => {
    const other = await service.startTenant({ credits: 5 });
    expect((await apiOf(service, other.key)('get', '/usage/requests')).body).toMatchObject({ data: [] });
    const foreign = await apiOf(service, other.key)('get', `/usage/requests?after=${String(ids[0])}`);
    expect(refusalOf(foreign)).toMatchObject({ status: 400, param: 'after' });
  });

  it.each([
    ['after', 'after=req_1'],
    ['after', 'after=%00'],
    ['after', `after=txn_${'a'.repeat(24)}`],
    ['limit', 'limit=101'],
    ['order', 'order=up'],
    ['key_id[0]', 'key_id=x'],
    ['mode[0]', 'mode='],
    ['model[0]', 'model=gpt'],
    ['endpoints', 'endpoints=chat'],
  ])('names the parameter that is wrong: %s in %s', async (param, query) => {
    expect(refusalOf(await api('get', `/usage/requests?${query}`))).toMatchObject({ status: 400, param });
  });
});

it('GET /usage has the sums of these requests', async () => {
  const { body: list } = await api('get', '/usage/requests');
  const total = (field: string) =>
    (list.data as Record<string, number>[]).reduce((sum, request) => sum + (request[field] ?? 0), 0);

  for (const query of [
    '',
    '?group_by=entity_id',
    '?bucket_width=1h&group_by=key_id&limit=168&start_time=__',
    '?group_by=mode,model',
  ]) {
    const start = String(Math.floor(Date.now() / 1000) - 7_200);
    const { body } = await api('get', `/usage${query.replace('__', start)}`);
    const results = (body.data as { results: Record<string, number>[] }[]).flatMap((bucket) => bucket.results);
    const sum = (field: string) => results.reduce((sofar, result) => sofar + (result[field] ?? 0), 0);
    expect(sum('requests')).toBe(ids.length);
    for (const field of ['prompt_tokens', 'completion_tokens', 'total_tokens', 'credits']) {
      expect(sum(field)).toBe(total(field));
    }
  }
});
