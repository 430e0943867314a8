import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, postStream, waitFor } from '../support/chat.ts';
import type { RunningWorker, TestTenant } from '../support/service.ts';
import { useService } from '../support/use-service.ts';

const REQUESTS = 60;
/** What one answer would cost, were there enough for all. */
const ANSWER_TOKENS = 300;
/** The key's answers were short so far, so that admission expects short ones. */
const SHORT_TOKENS = 20;
/** docs/spec/contract.md section 8: 2 % of what is there or so many tokens, whichever is larger. */
const OVERRUN_TOKENS = 200;

const CALLS = [
  ['streams', postStream],
  ['complete answers', postChat],
] as const;
const service = useService({ workers: 0 });
afterEach(() => {
  service.provider.restore();
});

/** Sixty requests, admitted while no worker runs, then all run at once. Returns the total tokens that were booked. */
async function runAtOnce(
  { key, keyId, tenantId }: TestTenant,
  post: typeof postChat,
  more: object,
): Promise<{ tokens: number; credits: number; reasons: string[]; statuses: number[] }> {
  const keys = service.keyspace.shard(0);
  await service.redis.set(keys.meanCompletion(keyId), SHORT_TOKENS);
  service.provider.change({ tokens: ANSWER_TOKENS, chunks: 100, chunk_ms: 5 });
  const sent = Array.from({ length: REQUESTS }, (_, index) =>
    post(service.app, key, chatOf(`Question ${index}`, more)).then((response) => response),
  );
  await waitFor(async () => {
    const waiting = await service.redis.zcard(keys.line('interactive'));
    return waiting === REQUESTS ? true : undefined;
  }, 'all requests to be admitted');
  const worker: RunningWorker = await service.startWorker();
  const responses = await Promise.all(sent);
  await waitFor(async () => {
    const { body } = await service.admin('get', `/tenants/${tenantId}`);
    const waiting = await service.redis.hlen(keys.pending(tenantId));
    return body.held === 0 && waiting === 0 ? true : undefined;
  }, 'rest');
  await worker.close();
  const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
  const text = responses.map(({ body }) => (typeof body === 'string' ? body : JSON.stringify(body)));
  return {
    tokens: rows.reduce((sum, row) => sum + (row.promptTokens ?? 0) + (row.completionTokens ?? 0), 0),
    credits: rows.reduce((sum, row) => sum - row.amountMicro, 0) / 1_000_000,
    reasons: text.flatMap((said) => /"finish_reason":"(\w+)"/.exec(said)?.[1] ?? []),
    statuses: responses.map(({ status }) => status),
  };
}

describe.each(CALLS)('sixty %s at once', (_kind, post) => {
  it('spend no more than the balance', async () => {
    const credits = 20_000;
    const tenant = await service.startTenant({ credits });

    const { credits: spent, reasons, statuses } = await runAtOnce(tenant, post, { model: 'oloid' });

    expect(spent).toBeLessThanOrEqual(credits + Math.max(credits * 0.02, OVERRUN_TOKENS * 4));
    expect(spent).toBeGreaterThan(credits / 2);
    expect(reasons).toContain('length');
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it('take no more than the monthly budget', async () => {
    const budget = 5_000;
    const tenant = await service.startTenant({ tenant: { monthly_token_budget: budget } });

    const { tokens, reasons } = await runAtOnce(tenant, post, {});

    expect(tokens).toBeLessThanOrEqual(budget + OVERRUN_TOKENS);
    expect(tokens).toBeGreaterThan(budget / 2);
    expect(reasons).toContain('length');
  });

  it('take no more than the daily allowance of test keys', async () => {
    const allowance = 5_000;
    const tenant = await service.startTenant({
      credits: 0,
      tenant: { test_daily_tokens: allowance },
      key: { mode: 'test' },
    });

    const { tokens, reasons } = await runAtOnce(tenant, post, {});

    expect(tokens).toBeLessThanOrEqual(allowance + OVERRUN_TOKENS);
    expect(tokens).toBeGreaterThan(allowance / 2);
    expect(reasons).toContain('length');
  });
});
