import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, ledgerOf, postChat, postStream, requestIdOf, waitFor, waitUntil } from '../../support/chat.ts';
import type { RunningWorker, TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';
import { usedOf } from '../../support/use-window.ts';

/** 3 for the prompt, 4 for the message, 1,000 for its 4,000 bytes. */
const PROMPT_TOKENS = 1_007;
const PROMPT = 'four'.repeat(1_000);
let worker: RunningWorker;
const service = useService({ workers: 0 });
beforeAll(async () => {
  await service.setProvider({ max_retries: 0 });
  worker = await service.startWorker();
});
afterEach(() => {
  service.provider.restore();
});

async function unbilled(reason: string): Promise<number> {
  const line = new RegExp(`^parley_unbilled_tokens_total\\{[^}]*reason="${reason}"[^}]*\\} (\\d+)$`, 'm');
  return Number(line.exec(await worker.metrics())?.[1] ?? 0);
}

/** What the key's requests weigh once nothing runs any more. */
async function weightOf({ keyId }: TestTenant): Promise<number> {
  const keys = service.keyspace.shard(0);
  return waitFor(async () => {
    if ((await service.redis.zcard(keys.inflight)) > 0) return undefined;
    return (await usedOf(service.redis, keys.tokenWindow(keyId))).tokens;
  }, 'the end');
}

/** Silence of this length counts as some tokens. */
const COUNTED_MS = 50;

async function cancelWhileRunning(tenant: TestTenant): Promise<void> {
  service.provider.change({ first_token_ms: 5_000 });
  const accepted = await postChat(service.app, tenant.key, chatOf(PROMPT)).set('Prefer', 'respond-async');
  const url = `/platform/v1/chat/${requestIdOf(accepted)}`;
  const call = (method: 'get' | 'post', path: string) =>
    request(service.app)[method](path).auth(tenant.key, { type: 'bearer' });
  await waitUntil(() => service.provider.request(requestIdOf(accepted))?.calls === 1, 'the call');
  const calledAt = performance.now();
  await waitUntil(() => performance.now() - calledAt > COUNTED_MS, 'a silence that counts');
  await call('post', `${url}/cancel`);
  await waitUntil(async () => (await call('get', url)).body.status === 'cancelled', 'the cancel');
}

/** The reason, and between which bounds the tokens lie. */
const WAYS: [reason: string, least: number, most: number, end: (tenant: TestTenant) => Promise<unknown>][] = [
  // Silence counts by the second.
  ['cancelled', PROMPT_TOKENS + 1, PROMPT_TOKENS + 500, cancelWhileRunning],
  [
    'failed',
    PROMPT_TOKENS,
    PROMPT_TOKENS,
    ({ key }) => {
      service.provider.change({ fail: 'status', status: 500 });
      return postChat(service.app, key, chatOf(PROMPT));
    },
  ],
  [
    'flagged',
    PROMPT_TOKENS + 1,
    PROMPT_TOKENS + 8,
    ({ key }) => {
      service.provider.change({ text: 'parley moderation test at once' });
      return postStream(service.app, key, chatOf(PROMPT));
    },
  ],
  [
    'not_json',
    2 * (PROMPT_TOKENS + 200),
    2 * (PROMPT_TOKENS + 230),
    ({ key }) => {
      service.provider.change({ json: 'invalid', tokens: 200 });
      return postChat(service.app, key, chatOf(PROMPT, { json_mode: true }));
    },
  ],
];

describe('a request that a provider was called for and that ends without text', () => {
  it.each(WAYS)('is not charged, and all that was asked for keeps its weight: %s', async (reason, least, most, end) => {
    const before = await unbilled(reason);
    const tenant = await service.startTenant({ credits: 100_000 });

    await end(tenant);

    const weight = await weightOf(tenant);
    expect(weight).toBeGreaterThanOrEqual(least);
    expect(weight).toBeLessThanOrEqual(most);
    expect((await unbilled(reason)) - before).toBe(weight);
    expect((await service.admin('get', `/tenants/${tenant.tenantId}`)).body).toMatchObject({
      balance: 100_000,
      held: 0,
    });
  });

  it('takes its prompt of the test allowance, and nothing of a budget', async () => {
    service.provider.change({ fail: 'status', status: 500 });
    const test = await service.startTenant({ tenant: { test_daily_tokens: 1_600 }, key: { mode: 'test' } });
    const live = await service.startTenant({ tenant: { monthly_token_budget: 1_600 } });

    for (const { key } of [test, live]) expect((await postChat(service.app, key, chatOf(PROMPT))).status).toBe(503);

    service.provider.restore();
    expect((await postChat(service.app, test.key, chatOf(PROMPT))).status).toBe(429);
    expect((await postChat(service.app, live.key, chatOf(PROMPT))).status).toBe(200);
  });

  it('takes answers that were not JSON of the test allowance, each time that one was asked for', async () => {
    service.provider.change({ json: 'invalid', tokens: 10_000 });
    const test = await service.startTenant({ tenant: { test_daily_tokens: 50_000 }, key: { mode: 'test' } });
    const call = () => postChat(service.app, test.key, chatOf('Prose', { json_mode: true, max_tokens: 16_000 }));

    const statuses = [];
    while (statuses.at(-1) !== 429 && statuses.length < 20) statuses.push((await call()).status);

    // Two asks of 10,000 tokens a request; then answers end where the allowance does, and are counted as what was shown.
    expect(statuses.slice(0, 2)).toEqual([503, 503]);
    expect(statuses.filter((status) => status === 503).length).toBeLessThanOrEqual(3);
    expect(statuses.slice(-1)).toEqual([429]);
  });

  it('counts the answer that was asked for once more beside the one that is charged', async () => {
    const tenant = await service.startTenant();
    service.provider.change({ json: 'invalid_once', tokens: 200 });

    const { body } = await postChat(service.app, tenant.key, chatOf(PROMPT, { json_mode: true }));

    expect(await weightOf(tenant)).toBeGreaterThanOrEqual(2 * body.usage.total_tokens - 1);
  });

  it('counts towards an hourly ceiling of the tenant, whose refusal names it', async () => {
    const { key, tenantId } = await service.startTenant();
    const hour = Math.floor(Date.now() / 3_600_000);
    await service.redis.hset(service.keyspace.shard(0).account(tenantId), 'unpaid', `${hour} 999000`);
    service.provider.change({ json: 'invalid', tokens: 1_000 });
    expect((await postChat(service.app, key, chatOf('Prose', { json_mode: true }))).status).toBe(503);

    service.provider.restore();
    const refused = await postChat(service.app, key, chatOf('Hi'));

    expect(refused.status).toBe(429);
    expect(refused.body.error).toMatchObject({ code: 'tpm_exceeded', message: expect.stringContaining('per hour') });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('weighs nothing where no provider was called', async () => {
    const tenant = await service.startTenant();

    expect((await postChat(service.app, tenant.key, chatOf(`parley moderation test ${PROMPT}`))).status).toBe(400);

    expect(await weightOf(tenant)).toBe(0);
  });
});

/** A third of this grace is 333 ms: a target that takes longer for an answer counts as slow. */
describe('a complete call to a target that has been slow', () => {
  const slow = useService({ workers: 0, env: { DISCONNECT_GRACE_SECONDS: '1' } });
  let slowWorker: RunningWorker;
  beforeAll(async () => {
    await slow.setProvider({ first_token_timeout_ms: 100 });
    slowWorker = await slow.startWorker();
  });

  it('is charged for its text so far if it is cancelled, and has all its time for the first of it', async () => {
    const { key } = await slow.startTenant();
    slow.provider.change({ first_token_ms: 600, chunks: 500, chunk_ms: 1, words: 500 });
    expect((await postChat(slow.app, key, chatOf('Slow'))).status).toBe(200);
    slow.provider.change({ first_token_ms: 600, chunks: 500, chunk_ms: 50, words: 500 });

    const answering = postChat(slow.app, key, chatOf('Slow, too')).then((response) => response);
    await waitFor(
      async () => /parley_time_to_first_token_seconds_count\{[^}]*\} 2$/m.exec(await slowWorker.metrics()) ?? undefined,
      'its first text',
    );
    const [requestId] = await slow.redis.zrange(slow.keyspace.shard(0).inflight, '0', '-1');
    await request(slow.app)
      .post(`/platform/v1/chat/${String(requestId)}/cancel`)
      .auth(key, { type: 'bearer' });

    const response = await answering;
    expect(response.body).toMatchObject({ choices: [{ finish_reason: 'cancelled' }] });
    expect(response.body.choices[0].message.content).not.toBe('');
    expect(await ledgerOf(slow, response)).toMatchObject({
      finishReason: 'cancelled',
      completionTokens: response.body.usage.completion_tokens,
      estimated: true,
    });
  });
});

describe('prices', () => {
  it('prices are those of the moment of acceptance', async () => {
    const tenant = await service.startTenant({ credits: 10_000 });
    service.provider.change({ first_token_ms: 1_000, tokens: 20 });
    const answering = postChat(service.app, tenant.key, chatOf('Hi')).then((response) => response);
    await waitFor(async () => {
      const { body } = await service.admin('get', `/tenants/${tenant.tenantId}`);
      return body.held > 0 ? true : undefined;
    }, 'the hold');
    const tier = (await service.admin('get', '/tiers/mobius')).body as { targets: object[] };

    const { targets } = tier;
    expect((await service.admin('put', '/tiers/mobius', { rates: { prompt: 9, completion: 9 }, targets })).status).toBe(
      200,
    );

    const { usage } = (await answering).body;
    const ledger = await waitFor(
      () => service.models.ledger.findOne({ tenantId: tenant.tenantId, type: 'usage' }).lean(),
      'the charge',
    );
    expect(-ledger.amountMicro / 1_000_000).toBe(usage.total_tokens);
  });
});
