import { beforeAll, describe, expect, it } from '@jest/globals';

import type { EndpointName } from '../../../api/endpoints.ts';
import { chatOf, ledgerOf, postChat, requestIdOf } from '../../support/chat.ts';
import {
  call,
  ENDPOINT_NAMES,
  endpointRule,
  makeResources,
  namesThing,
  paramsOf,
  send,
} from '../../support/endpoints.ts';
import type { PathParam } from '../../support/endpoints.ts';
import { refusalOf } from '../../support/refusal.ts';
import type { TestTenant } from '../../support/service.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeKey } from '../../support/tenant-keys.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

type Things = Partial<Record<PathParam, string>>;

const service = useService({ env: { PAYMENTS: 'test' } });
const live = useTenant(service);
const test: TestTenant = { tenantId: '', keyId: '', key: '' };
const made: Record<'live' | 'test', Things> = { live: {}, test: {} };
/** The others are of every mode (keys) or of live keys alone (checkouts). */
const OF_ONE_MODE = ['requestId', 'batchId', 'entityId', 'webhookId', 'deliveryId', 'exportId', 'deletionId'] as const;

beforeAll(async () => {
  const { id, value } = await makeKey(apiOf(service, live.key), { mode: 'test', scopes: ['*'] });
  Object.assign(test, { tenantId: live.tenantId, keyId: id, key: value });
  made.live = await makeResources(service, live);
  made.test = await makeResources(service, test, OF_ONE_MODE);
  // An entity_id of its own: what both modes have under one name is told apart below.
  await apiOf(service, test.key)('put', '/entities/test%2F1', {});
  await apiOf(service, test.key)('delete', '/entities/pupil%2F1');
  made.test.entityId = 'test/1';
}, 60_000);

/** Endpoints that name a thing; PUT makes what is not there. */
const NAMING = ENDPOINT_NAMES.filter((name) => {
  const { path, method } = endpointRule(name);
  return namesThing(path) && method !== 'PUT';
});
const isOfKeys = (name: EndpointName) => paramsOf(endpointRule(name).path).includes('keyId');

describe('a test key, asking for a live thing', () => {
  it.each(NAMING.filter((name) => !isOfKeys(name)))('is 404 at %s', async (name) => {
    const response = await call(service, name, { key: test.key, values: made.live });

    expect(refusalOf(response)).toMatchObject({ status: 404, code: 'not_found', type: 'not_found_error' });
  });

  it.each(NAMING.filter(isOfKeys))('is refused the live key at %s', async (name) => {
    const response = await call(service, name, { key: test.key, values: made.live });

    const isRead = endpointRule(name).method === 'GET';
    expect(refusalOf(response)).toMatchObject(
      isRead ? { status: 404, code: 'not_found' } : { status: 403, code: 'endpoint_not_allowed', param: 'mode' },
    );
    expect((await send(service, 'GET', '/models').auth(live.key, { type: 'bearer' })).status).toBe(200);
  });

  it('is 403 for a checkout', async () => {
    expect(refusalOf(await call(service, 'createCheckout', { key: test.key }))).toMatchObject({
      status: 403,
      code: 'endpoint_not_allowed',
    });
  });
});

describe('a live key, asking for a test thing', () => {
  const param = (name: EndpointName) => paramsOf(endpointRule(name).path)[0];

  it.each(NAMING.filter((name) => OF_ONE_MODE.some((each) => each === param(name))))('is 404 at %s', async (name) => {
    const response = await call(service, name, { key: live.key, values: made.test });

    expect(refusalOf(response)).toMatchObject({ status: 404, code: 'not_found', type: 'not_found_error' });
  });

  it('has the test keys, which it may change and revoke', async () => {
    const api = apiOf(service, live.key);
    const { id } = await makeKey(api, { mode: 'test' });

    expect((await api('get', `/keys/${id}`)).body).toMatchObject({ mode: 'test', scopes: ['*'] });
    expect((await api('patch', `/keys/${id}`, { name: 'CI' })).body).toMatchObject({ name: 'CI' });
    expect((await api('post', `/keys/${id}/rotate`, {})).status).toBe(200);
    expect((await api('delete', `/keys/${id}`)).body).toMatchObject({ deleted: true });
  });
});

/**
 * What keys of the two modes see in each list: `apart`: each its own; `overseen`: live keys the test things as well;
 * `common`: the same; `live`: test keys nothing.
 */
const SEEN = {
  apart: { live: 1, test: 1, both: 0, liveAlone: 1, testAlone: 1 },
  overseen: { live: 1, test: 1, both: 1, liveAlone: 1, testAlone: 0 },
  common: { live: 1, test: 1, both: 1, liveAlone: 0, testAlone: 0 },
  live: { live: 1, test: 0, both: 0, liveAlone: 1, testAlone: 0 },
} as const;
const LISTS = {
  listModels: 'common',
  listChatRequests: 'apart',
  listBatches: 'apart',
  listKeys: 'overseen',
  listEntities: 'apart',
  getUsage: 'overseen',
  listUsageRequests: 'overseen',
  getCallingKey: 'apart',
  getBilling: 'common',
  listBillingPackages: 'common',
  listPurchases: 'live',
  listTransactions: 'overseen',
  listWebhooks: 'apart',
  listExports: 'apart',
  listDeletions: 'apart',
  listAuditLog: 'overseen',
} as const satisfies Partial<Record<EndpointName, keyof typeof SEEN>>;
const LIST_NAMES = ENDPOINT_NAMES.filter((name) => {
  const { path, method } = endpointRule(name);
  return method === 'GET' && paramsOf(path).length === 0;
});

describe('in the list of', () => {
  beforeAll(async () => {
    for (const { key } of [live, test]) {
      await ledgerOf(service, await postChat(service.app, key, chatOf('Hi')));
      await waitFor(async () => (await idsOf('listChatRequests', key))[0], 'the list of requests');
    }
    const packages = [{ id: 'small', name: 'Small', credits: 1_000, amount: 100 }];
    await service.admin('put', '/packages', { currency: 'usd', price_per_million_credits: 500, packages });
    await service.models.purchases.create({
      ...{ _id: 'pur_1', tenantId: live.tenantId, checkoutId: 'cs_1', transactionId: 'txn_1', payment: 'test' },
      ...{ creditsMicro: 1, amount: 1, currency: 'usd', refundedAmount: 0, refundedMicro: 0, createdAt: 1 },
    });
  });

  async function idsOf(name: EndpointName, key: string): Promise<string[]> {
    const { path } = endpointRule(name);
    const query = path === '/usage' ? '?group_by=mode,key_id' : '';
    const { status, body } = await send(service, 'GET', `${path}${query}`).auth(key, { type: 'bearer' });
    expect([name, status]).toEqual([name, 200]);
    if (path === '/billing') return ['balance'];
    if (path === '/key') return [(body as { id: string }).id];
    const { data } = body as { data: { id: string; results?: { mode: string; key_id: string }[] }[] };
    return data.flatMap(({ id, results }) => results?.map(({ mode, key_id: keyId }) => `${mode} ${keyId}`) ?? [id]);
  }

  // Object.keys forgets that the names are those of the record.
  it.each(Object.keys(LISTS) as (keyof typeof LISTS)[])('%s', async (name) => {
    const [ofLive, ofTest] = [await idsOf(name, live.key), await idsOf(name, test.key)];
    const count = (ids: string[]) => Math.min(1, ids.length);

    expect({
      live: count(ofLive),
      test: count(ofTest),
      both: count(ofTest.filter((id) => ofLive.includes(id))),
      liveAlone: count(ofLive.filter((id) => !ofTest.includes(id))),
      testAlone: count(ofTest.filter((id) => !ofLive.includes(id))),
    }).toEqual(SEEN[LISTS[name]]);
  });

  it('nothing else: each has said what keys of the other mode see of it', () => {
    expect(Object.keys(LISTS).sort()).toEqual([...LIST_NAMES].sort());
  });
});

describe('what a test key makes', () => {
  it('under the entity_id of a live entity is another entity with a history of its own', async () => {
    const [liveApi, testApi] = [apiOf(service, live.key), apiOf(service, test.key)];
    await liveApi('post', '/entities', { entity_id: 'Ada', name: 'Ada', grade: '5' });
    await postChat(service.app, live.key, { ...chatOf('From live'), entity_id: 'Ada' });

    const created = await testApi('put', '/entities/Ada', { name: 'Test' });
    await postChat(service.app, test.key, { ...chatOf('From test'), entity_id: 'Ada' });

    expect(created.status).toBe(201);
    const contents = async (api: typeof liveApi) =>
      ((await api('get', '/entities/Ada/history?order=asc')).body.data as { content: string }[])[0]?.content;
    expect([await contents(liveApi), await contents(testApi)]).toEqual(['From live', 'From test']);
    expect((await testApi('delete', '/entities/Ada')).status).toBe(200);
    expect((await liveApi('get', '/entities/Ada')).body).toMatchObject({ name: 'Ada', grade: '5' });
    expect(await contents(liveApi)).toBe('From live');
  });

  it('is found by it after Redis has let the answer go, and by live keys not', async () => {
    const asked = await postChat(service.app, test.key, chatOf('Kept')).set('Idempotency-Key', 'kept-by-test');
    const requestId = requestIdOf(asked);
    await ledgerOf(service, asked);
    const { record, stream, answer } = service.keyspace.shard(0);
    for (const name of [record(requestId), stream(requestId), answer(requestId)]) await service.redis.del(name);

    const look = (key: string) => send(service, 'GET', `/chat/${requestId}`).auth(key, { type: 'bearer' });

    expect(refusalOf(await look(live.key))).toMatchObject({ status: 404, code: 'not_found' });
    expect((await look(test.key)).status).toBe(200);
    // It is in Redis again.
    expect(refusalOf(await look(live.key))).toMatchObject({ status: 404, code: 'not_found' });
  });

  it('by default may call everything, within what its mode allows', async () => {
    const { value } = await makeKey(apiOf(service, live.key), { mode: 'test' });
    const api = apiOf(service, value);

    expect((await postChat(service.app, value, chatOf('Hi'))).status).toBe(200);
    expect((await api('get', '/keys')).status).toBe(200);
    for (const refused of [await api('post', '/keys', {}), await api('delete', `/keys/${live.keyId}`)])
      expect(refusalOf(refused)).toMatchObject({ status: 403, code: 'endpoint_not_allowed', param: 'mode' });
  });
});
