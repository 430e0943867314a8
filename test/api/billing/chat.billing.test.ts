import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, postStream, waitFor, waitUntil } from '../../support/chat.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';
const service = useService();
afterEach(() => {
  service.provider.restore();
});

interface TenantFigures {
  balance: number;
  held: number;
}

async function figuresOf(tenantId: string): Promise<TenantFigures> {
  return (await service.admin('get', `/tenants/${tenantId}`)).body as TenantFigures;
}

/** Waits until nothing is held and every charge is in the book. */
async function settled(tenantId: string, entries: number): Promise<TenantFigures> {
  await waitFor(async () => {
    const count = await service.models.ledger.countDocuments({ tenantId, type: 'usage' });
    return count === entries ? true : undefined;
  }, 'the ledger entries');
  return waitFor(async () => {
    const figures = await figuresOf(tenantId);
    return figures.held === 0 ? figures : undefined;
  }, 'the release of the holds');
}

describe('a balance', () => {
  it('of zero is 402 insufficient_credits without Retry-After, and no provider is called', async () => {
    const { key } = await service.startTenant({ credits: 0 });
    const { calls } = service.provider.stats();

    for (const post of [postChat, postStream]) {
      expect(refusalOf(await post(service.app, key, chatOf('Hi')))).toMatchObject({
        status: 402,
        code: 'insufficient_credits',
        type: 'billing_error',
        retryAfter: undefined,
        reason: undefined,
      });
    }
    expect(service.provider.stats().calls).toBe(calls);
  });

  it('that an adjustment took below zero is 402 at once, and credits end that at once', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 1_000 });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    await settled(tenantId, 1);

    await service.admin('post', `/tenants/${tenantId}/credits`, { credits: -5_000, reason: 'refund' });
    expect(refusalOf(await postChat(service.app, key, chatOf('Hi')))).toMatchObject({
      status: 402,
      code: 'insufficient_credits',
    });
    expect((await figuresOf(tenantId)).balance).toBeLessThan(-4_000);

    await service.admin('post', `/tenants/${tenantId}/credits`, { credits: 10_000, reason: 'grant' });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
  });

  it('is charged by the tier’s rates for what the provider counted', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const mobius = await postChat(service.app, key, chatOf('Hi', { model: 'mobius' }));
    const oloid = await postChat(service.app, key, chatOf('Hi', { model: 'oloid' }));

    const { balance } = await settled(tenantId, 2);
    expect(balance).toBe(10_000 - Number(mobius.body.usage.total_tokens) - 4 * Number(oloid.body.usage.total_tokens));
  });

  it('that is above zero but held by a running request is 402 with Retry-After and the reason in_flight', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 100 });
    service.provider.change({ first_token_ms: 1_500, tokens: 5 });
    const running = postChat(service.app, key, chatOf('Hi', { max_tokens: 90 })).then((response) => response);
    await waitUntil(async () => (await figuresOf(tenantId)).held > 0, 'the hold');

    const refused = refusalOf(await postChat(service.app, key, chatOf('Hi', { max_tokens: 90 })));

    expect(refused).toMatchObject({
      status: 402,
      code: 'insufficient_credits',
      type: 'billing_error',
      reason: 'in_flight',
    });
    expect(refused.retryAfter).toBeGreaterThanOrEqual(1);
    expect((await running).status).toBe(200);
    service.provider.restore();
    await settled(tenantId, 1);
    expect((await postChat(service.app, key, chatOf('Hi', { max_tokens: 5 }))).status).toBe(200);
  });

  it('a balance however small always admits one request', async () => {
    const { key } = await service.startTenant({ credits: 1 });
    expect((await postChat(service.app, key, chatOf('Hi', { max_tokens: 5 }))).status).toBe(200);
  });
});

describe('a test key', () => {
  it('skips billing with an empty balance, and its entry costs nothing', async () => {
    const { key, tenantId, keyId } = await service.startTenant({ credits: 0, key: { mode: 'test' } });

    const response = await postChat(service.app, key, chatOf('Hi'));

    expect(response.status).toBe(200);
    expect(await settled(tenantId, 1)).toMatchObject({ balance: 0, held: 0 });
    const entry = await service.models.ledger.findOne({ tenantId }).lean();
    expect(entry).toMatchObject({ keyId, mode: 'test', requestId: response.body.id });
    expect(Math.abs(entry?.amountMicro ?? NaN)).toBe(0);
    expect(entry?.promptTokens).toBe(response.body.usage.prompt_tokens);
  });

  it('takes none of the monthly budget, and none is asked for', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { monthly_token_budget: 1 }, key: { mode: 'test' } });

    await postChat(service.app, key, chatOf('Hi'));
    await settled(tenantId, 1);

    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
  });

  it('is limited by the daily allowance of its tenant: 429 tpm_exceeded', async () => {
    const { key } = await service.startTenant({ tenant: { test_daily_tokens: 1 }, key: { mode: 'test' } });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);

    const refused = refusalOf(await postChat(service.app, key, chatOf('Hi')));

    expect(refused).toMatchObject({ status: 429, code: 'tpm_exceeded', message: expect.stringContaining('test keys') });
    expect(refused.retryAfter).toBeLessThanOrEqual(86_400);
  });
});

describe('a monthly token budget', () => {
  it('that is reached is 402 budget_exceeded without Retry-After', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { monthly_token_budget: 10 } });
    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
    await settled(tenantId, 1);

    expect(refusalOf(await postChat(service.app, key, chatOf('Hi')))).toMatchObject({
      status: 402,
      code: 'budget_exceeded',
      type: 'billing_error',
      retryAfter: undefined,
      message: expect.stringContaining('10 tokens'),
    });
  });

  it('ends being reached at once when it is raised or lifted', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { monthly_token_budget: 10 } });
    await postChat(service.app, key, chatOf('Hi'));
    await settled(tenantId, 1);

    await service.admin('patch', `/tenants/${tenantId}`, { monthly_token_budget: null });

    expect((await postChat(service.app, key, chatOf('Hi'))).status).toBe(200);
  });

  it('that is held by a running request is 402 with Retry-After and the reason in_flight', async () => {
    const { key, tenantId } = await service.startTenant({ tenant: { monthly_token_budget: 100 } });
    service.provider.change({ first_token_ms: 1_500, tokens: 5 });
    const running = postChat(service.app, key, chatOf('Hi', { max_tokens: 90 })).then((response) => response);
    await waitUntil(async () => (await figuresOf(tenantId)).held > 0, 'the hold');

    const refused = refusalOf(await postChat(service.app, key, chatOf('Hi', { max_tokens: 90 })));

    expect(refused).toMatchObject({ status: 402, code: 'budget_exceeded', type: 'billing_error', reason: 'in_flight' });
    expect(refused.retryAfter).toBeGreaterThanOrEqual(1);
    expect((await running).status).toBe(200);
  });
});
