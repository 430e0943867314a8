import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { errorOf } from '../../support/admin.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const WORD = 'zanzibar-pupil-words';
const FAILING = 'sim?fail=status&fail_rate=1';
const service = useService({ workers: 0 });
const tenant = useTenant(service, { credits: 1_000_000 });
const other = useTenant(service, { credits: 0 });
beforeAll(async () => {
  await service.setProvider({ max_retries: 2 });
  await service.setTargets('mobius', [
    { provider: 'simulated', model: 'sim', cost: { currency: 'usd', prompt: 1, completion: 2 } },
  ]);
  await service.setTargets('oloid', [{ provider: 'simulated', model: FAILING }]);
  await service.startWorker();
});
beforeEach(() => {
  service.provider.restore();
});
afterAll(() => {
  expect(service.log.errors()).toEqual([]);
});

type Found = Record<string, unknown> & { id: string; timeline: Record<string, unknown> & { attempts: unknown[] } };

/** The request in the administration once it is written. */
const requestOf = (id: unknown) =>
  waitFor(
    async () => {
      const { status, body } = await service.admin('get', `/requests/${String(id)}`);
      return status === 200 ? (body as Found) : undefined;
    },
    `${String(id)} in the log`,
  );

async function listOf(query: string): Promise<Found[]> {
  const { status, body } = await service.admin('get', `/requests?${query}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body.data as Found[];
}

const ask = async (key: string, more: object = {}) => {
  const response = await postChat(service.app, key, chatOf(WORD, more));
  return { response, id: String(response.headers['x-request-id']) };
};

describe('a request in the administration', () => {
  it('has its timeline, provider calls, tokens, price and cost, and none of its text', async () => {
    const { response, id } = await ask(tenant.key, { entity_id: 'zanzibar-entity' });
    expect(response.status).toBe(200);

    const found = await requestOf(id);

    const { usage } = response.body as { usage: { prompt_tokens: number; completion_tokens: number } };
    expect(found).toMatchObject({
      ...{ id, object: 'request', tenant_id: tenant.tenantId, key_id: tenant.keyId, mode: 'live', endpoint: 'chat' },
      ...{ status: 'completed', finish_reason: 'stop', error_code: null, reason: null, tier: 'mobius' },
      ...{ provider: 'simulated', model: 'sim', prompt_tokens: usage.prompt_tokens, currency: 'usd' },
      credits: usage.prompt_tokens + usage.completion_tokens,
      cost: (usage.prompt_tokens + 2 * usage.completion_tokens) / 1e6,
    });
    const { accepted_at, started_at, first_token_at, finished_at, attempts, verdict } = found.timeline;
    const times = [accepted_at, started_at, first_token_at, finished_at].map(Number);
    expect(times).toEqual(times.toSorted((one, next) => one - next));
    expect(verdict).toBe('passed');
    expect(attempts).toMatchObject([{ provider: 'simulated', model: 'sim', outcome: 'ok' }]);
    expect(JSON.stringify(await service.models.requestLog.findById(id).lean())).not.toContain('zanzibar');
  });

  it('says what failed last, and in which call', async () => {
    const { response, id } = await ask(tenant.key, { model: 'oloid' });
    expect(response.status).toBe(503);

    expect(await requestOf(id)).toMatchObject({
      status: 'failed',
      error_code: 'model_unavailable',
      reason: `model_unavailable: simulated ${FAILING} status_500, attempt 3`,
      credits: 0,
      timeline: { attempts: [{}, {}, { outcome: 'status_500' }] },
    });
  });

  it('is found by tenant, key, status, tier, provider and time, newest first, page by page', async () => {
    const ids: string[] = [];
    for (let call = 0; call < 3; call += 1) ids.push((await ask(tenant.key)).id);
    for (const id of ids) await requestOf(id);
    const wanted = `tenant_id=${tenant.tenantId}&key_id=${tenant.keyId}&status=completed&tier=mobius&provider=simulated`;

    const [first] = await listOf(`${wanted}&limit=1`);
    const rest = await listOf(`${wanted}&limit=2&after=${String(first?.id)}`);

    expect([first, ...rest].map((found) => found?.id)).toEqual(ids.toReversed());
    const [oldest] = rest.toReversed();
    const since = Number(oldest?.['created_at']);
    expect((await listOf(`${wanted}&start_time=${since}`)).map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    expect(await listOf(`${wanted}&end_time=${since - 100}`)).toEqual([]);
    expect(await listOf(`tenant_id=${other.tenantId}&status=completed`)).toEqual([]);
  });

  it.each([
    ['tennant_id=x', 'tennant_id'],
    ['tenant_id=ten_1', 'tenant_id'],
    ['status=lost', 'status'],
    ['limit=1&page=2', 'page'],
    ['start_time=yesterday', 'start_time'],
  ])('is not looked for with %s', async (query, param) => {
    const response = await service.admin('get', `/requests?${query}`);

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
  });

  it('is unknown under an id that no request had', async () => {
    const { status } = await service.admin('get', '/requests/req_000000000000000000000000');

    expect(status).toBe(404);
  });
});

describe('a refused request', () => {
  const countsOf = (query: string, count: number) =>
    waitFor(async () => {
      const { body } = await service.admin('get', `/refusals?${query}`);
      const data = body.data as { count: number }[];
      return data.reduce((sum, each) => sum + each.count, 0) === count ? data : undefined;
    }, `${count} refusals of ${query}`);

  it('is counted by key and minute, and found under its id while it is one of the first', async () => {
    const calls = [];
    for (let call = 0; call < 12; call += 1) calls.push(await ask(other.key));
    for (const { response } of calls) expect(response.status).toBe(402);

    const counts = await countsOf(`key_id=${other.keyId}&error_code=insufficient_credits`, 12);

    expect(counts).toMatchObject(
      counts.map(() => ({ tenant_id: other.tenantId, key_id: other.keyId, error_code: 'insufficient_credits' })),
    );
    expect(await requestOf(calls[0]?.id)).toMatchObject({
      status: 'refused',
      error_code: 'insufficient_credits',
      endpoint: 'POST /chat',
      tenant_id: other.tenantId,
      timeline: { accepted_at: null, attempts: [] },
    });
    const listed = await listOf(`tenant_id=${other.tenantId}&status=refused&limit=100`);
    expect(listed.length).toBeLessThanOrEqual(5 * counts.length);
  });

  it.each([
    ['a body that is none', 400, 'invalid_request', { messages: 'none' }],
    ['a scope that it has not', 403, 'endpoint_not_allowed', undefined],
  ])('with %s is %i', async (_why, status, code, body) => {
    const own = await service.startTenant({ key: { scopes: body === undefined ? ['usage'] : ['*'] } });
    const response = await postChat(service.app, own.key, body ?? chatOf(WORD));
    expect(response.status).toBe(status);

    expect(await requestOf(response.headers['x-request-id'])).toMatchObject({
      status: 'refused',
      error_code: code,
      key_id: own.keyId,
    });
  });

  it('of a revoked key is found, and one of an unknown key is not', async () => {
    const own = await service.startTenant();
    await service.admin('delete', `/tenants/${own.tenantId}/keys/${own.keyId}`);
    const refused = await waitFor(async () => {
      const { response, id } = await ask(own.key);
      return response.status === 401 ? id : undefined;
    }, 'the key to be revoked');

    expect(await requestOf(refused)).toMatchObject({ status: 'refused', key_id: own.keyId });
    expect((await listOf(`key_id=${own.keyId}`)).every(({ key_id }) => key_id === own.keyId)).toBe(true);
  });

  it('is none where a request was accepted and ended with the same status', async () => {
    service.provider.change({ fail: 'status', status: 400, fail_rate: 1 });
    const { response, id } = await ask(tenant.key);
    expect(response.status).toBe(400);

    expect(await requestOf(id)).toMatchObject({ status: 'failed', error_code: 'invalid_request', tier: 'mobius' });
  });
});

it('leaves no word of a request in the log of requests', async () => {
  await requestOf((await ask(tenant.key)).id);

  const rows = await service.models.requestLog.find().lean();

  expect(JSON.stringify(rows)).not.toContain(WORD);
});
