import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { createSimulatedProvider } from '../../../scripts/simulated-provider/simulated-provider.ts';
import { errorOf } from '../../support/admin.ts';
import { chatOf, postChat } from '../../support/chat.ts';
import { useAdmin, useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const backup = createSimulatedProvider({ defaults: { text: 'from the backup' } });
const service = useService({ workers: 0 });
const tenant = useTenant(service, { credits: 10_000_000 });
const other = useTenant(service, { credits: 10_000_000 });
const KINDS = {
  cached_tokens: 0,
  cache_write_tokens: 0,
  prompt_audio_tokens: 0,
  reasoning_tokens: 0,
  completion_audio_tokens: 0,
};
const COST = { currency: 'usd', prompt: 0.25, completion: 2 };
beforeAll(async () => {
  const { url } = await backup.listen();
  await service.setProvider({ max_retries: 0 });
  await service.setProvider({ base_url: `${url}/v1` }, 'backup');
  await service.setTargets('mobius', [
    { provider: 'simulated', model: 'sim', priority: 1, cost: COST },
    { provider: 'backup', model: 'a b', priority: 2, cost: { ...COST, prompt: 1 } },
  ]);
  await service.setTargets('oloid', [{ provider: 'simulated', model: 'sim' }]);
  await service.admin('put', '/packages', { currency: 'usd', price_per_million_credits: 500, packages: [] });
  await service.startWorker();
});
beforeEach(() => {
  service.provider.restore();
});
afterAll(async () => {
  expect(service.log.errors()).toEqual([]);
  await backup.close();
});

interface Result extends Record<string, unknown> {
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
}

async function resultsOf(path: string): Promise<Result[]> {
  const { status, body } = await service.admin('get', path);
  expect({ status, body }).toMatchObject({ status: 200, body: { object: 'page' } });
  return (body as unknown as { data: { results: Result[] }[] }).data.flatMap(({ results }) => results);
}

/** The results once so many requests are booked. */
const bookedOf = (path: string, requests: number) =>
  waitFor(async () => {
    const results = await resultsOf(path);
    return results.reduce((sum, each) => sum + each.requests, 0) === requests ? results : undefined;
  }, `${requests} requests in ${path}`);

const ask = async (key: string, model: string) => {
  const { status, body } = await postChat(service.app, key, chatOf('Hello', { model }));
  expect(status).toBe(200);
  return body as { usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } };
};

describe('the margin', () => {
  it('has cost and price by tenant, tier and target, and says where a cost is unknown', async () => {
    const { usage } = await ask(tenant.key, 'mobius');
    await ask(other.key, 'oloid');
    service.provider.change({ fail: 'status', status: 500 });
    const second = await ask(tenant.key, 'mobius');
    const results = await bookedOf('/margin?group_by=tenant_id,tier,provider,model', 3);

    const price = (credits: number) => (credits * 5) / 1e6;
    const row = (more: object) =>
      results.find((each) => Object.entries(more).every(([name, value]) => each[name] === value));
    const cost = (usage.prompt_tokens * 0.25 + usage.completion_tokens * 2) / 1e6;
    expect(row({ tenant_id: tenant.tenantId, provider: 'simulated' })).toEqual({
      object: 'usage.result',
      requests: 1,
      ...usage,
      ...KINDS,
      credits: usage.total_tokens,
      estimated_requests: 0,
      tenant_id: tenant.tenantId,
      key_id: null,
      tier: 'mobius',
      provider: 'simulated',
      model: 'sim',
      mode: null,
      endpoint: null,
      currency: 'usd',
      cost: expect.closeTo(cost, 8),
      price: expect.closeTo(price(usage.total_tokens), 8),
      price_currency: 'usd',
      margin: expect.closeTo(price(usage.total_tokens) - cost, 8),
    });
    expect(row({ provider: 'backup' })).toMatchObject({
      model: 'a b',
      cost: expect.closeTo((second.usage.prompt_tokens + second.usage.completion_tokens * 2) / 1e6, 8),
    });
    expect(row({ tenant_id: other.tenantId })).toMatchObject({
      tier: 'oloid',
      currency: null,
      cost: null,
      margin: null,
    });
  });

  it('is CSV for those who ask for it', async () => {
    await bookedOf('/margin', 3);
    const response = await service.admin('get', '/margin?group_by=provider', undefined, { Accept: 'text/csv' });
    expect(response.headers['content-type']).toMatch(/^text\/csv/);
    const [head = '', ...lines] = response.text.trim().split('\r\n');
    expect(head).toBe(
      'start_time,end_time,object,requests,prompt_tokens,completion_tokens,total_tokens,cached_tokens,cache_write_tokens,prompt_audio_tokens,reasoning_tokens,completion_audio_tokens,credits,estimated_requests,tenant_id,key_id,tier,provider,model,mode,endpoint,currency,cost,price,price_currency,margin',
    );
    expect(lines).toHaveLength(3);
  });
});

it('usage is that of all tenants, filtered by any of its groups', async () => {
  await bookedOf('/usage', 3);
  expect((await resultsOf(`/usage?tenant_id=${other.tenantId}`)).map((each) => each.requests)).toEqual([1]);
  expect((await resultsOf('/usage?provider=backup&tier=mobius&model=a%20b')).map((each) => each.requests)).toEqual([1]);
  const { status, body } = await service.admin('get', '/usage?group_by=entity_id');
  expect([status, (body as unknown as { error: { param: string } }).error.param]).toEqual([400, 'group_by[0]']);
});

it("a tenant's transactions say what their calls cost", async () => {
  await bookedOf('/usage', 3);
  const { body } = await service.admin('get', `/tenants/${tenant.tenantId}/transactions?type=usage`);
  const { data } = body as unknown as { data: Record<string, unknown>[] };
  expect(data).toHaveLength(2);
  // Booked in one go, they stand in the order of their ids.
  expect(data.find(({ provider }) => provider === 'backup')).toMatchObject({
    model: 'a b',
    currency: 'usd',
    cost: expect.any(Number),
  });
});

it('a tenant never sees what the operator pays', async () => {
  await bookedOf('/usage', 3);
  for (const path of ['/usage', '/usage/requests', '/billing/transactions']) {
    const answer = await fetch(`${service.url}/platform/v1${path}`, {
      headers: { Authorization: `Bearer ${tenant.key}` },
    });
    expect(await answer.text()).not.toMatch(/spend|cost|currency|provider/);
  }
});

describe('a tier whose targets', () => {
  const admin = useAdmin({ isTargetCostRequired: true });
  beforeAll(async () => {
    await admin.call('put', '/admin/v1/providers/p', { kind: 'simulated', base_url: 'http://127.0.0.1:9/v1' });
  });
  const put = (...costs: (object | null)[]) =>
    admin.call('put', '/admin/v1/tiers/mobius', {
      rates: { prompt: 1, completion: 1 },
      targets: costs.map((cost) => ({ provider: 'p', model: 'm', cost })),
    });

  it('have no cost is refused where costs are required', async () => {
    expect(errorOf(await put(COST, null))).toMatchObject({ code: 'invalid_request', param: 'targets[1].cost' });
  });

  it('cost in two currencies is refused', async () => {
    const answer = await put(COST, { ...COST, currency: 'eur' });
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'targets[1].cost.currency' });
  });

  it('have costs shows them', async () => {
    expect((await put(COST)).body).toMatchObject({ targets: [{ cost: COST }] });
  });
});
