import { createHash } from 'node:crypto';

import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, postChat, postStream, waitFor } from '../../support/chat.ts';
import type { RunningWorker, TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const REQUESTS = 60;
/** What one answer would cost, were there enough for all. */
const ANSWER_TOKENS = 300;
/** The key's answers were short so far, so that admission expects short ones. */
const SHORT_TOKENS = 20;

const CALLS = [
  ['streams', postStream],
  ['complete answers', postChat],
] as const;
const service = useService({ workers: 0 });
afterEach(() => {
  service.provider.restore();
});

/** Text of several scripts, of which a token is far shorter than the four bytes of an estimate, or longer. */
function denseText(): string {
  const bytes = createHash('shake256', { outputLength: 400 }).update('dense').digest();
  const letters = (from: number, count: number) =>
    [...bytes].map((byte) => String.fromCodePoint(from + (byte % count)));
  const scripts = [letters(0x61, 26), letters(0x4e00, 256), letters(0x0e01, 46)].map((script) => script.join(''));
  scripts.push(bytes.toString('base64'), bytes.toString('hex'), bytes.join('){a[') + '=0;');
  return Array.from({ length: 40 }, (_, line) => scripts.map((s) => s.slice(line * 10, line * 10 + 10)).join(' ')).join(
    ' ',
  );
}

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
    const waiting = await service.redis.zcard(keys.prioritized('interactive'));
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

    expect(spent).toBeLessThanOrEqual(credits);
    expect(spent).toBeGreaterThan(credits / 2);
    expect(reasons).toContain('length');
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it('take no more than the monthly budget', async () => {
    const budget = 5_000;
    const tenant = await service.startTenant({ tenant: { monthly_token_budget: budget } });

    const { tokens, reasons } = await runAtOnce(tenant, post, {});

    expect(tokens).toBeLessThanOrEqual(budget);
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

    expect(tokens).toBeLessThanOrEqual(allowance);
    expect(tokens).toBeGreaterThan(allowance / 2);
    expect(reasons).toContain('length');
  });

  it.each([
    ['the balance, at rate 1', 5_000, { credits: 5_000 }, { model: 'mobius' }],
    ['the balance, at rate 4', 20_000, { credits: 20_000 }, { model: 'oloid' }],
    ['the monthly budget', 5_000, { tenant: { monthly_token_budget: 5_000 } }, {}],
    ['the allowance of test keys', 5_000, { tenant: { test_daily_tokens: 5_000 }, key: { mode: 'test' as const } }, {}],
  ])('are charged no more than was granted of %s, however dense the text is', async (_bound, most, options, more) => {
    const tenant = await service.startTenant(options);
    service.provider.change({ text: denseText(), usage: 'absent' });

    const { tokens, credits, reasons } = await runAtOnce(tenant, post, more);

    const taken = 'credits' in options ? credits : tokens;
    expect(taken).toBeLessThanOrEqual(most);
    expect(taken).toBeGreaterThan(most / 2);
    expect(reasons).toContain('length');
  });
});
