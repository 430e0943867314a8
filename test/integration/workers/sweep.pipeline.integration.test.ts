import { afterEach, describe, expect, it } from '@jest/globals';
import type { Response } from 'supertest';

import { createRequestStore } from '../../../shared/requests/delivery-store.ts';
import type { DeliveryRef } from '../../../shared/requests/delivery.ts';
import type { RequestEnvelope } from '../../../shared/contracts/jobs.ts';
import {
  chatOf,
  errorOf,
  expectUncharged,
  ledgerOf,
  parseSse,
  postChat,
  postStream,
  textOf,
  waitFor,
} from '../../support/chat.ts';
import type { TestTenant } from '../../support/service.ts';
import { useService } from '../../support/use-service.ts';

const CREDITS = 100_000;
const SHARD = 0;

/** No worker runs while a test brings a request into the state that a dead one leaves behind. */
describe('a request that lost its worker', () => {
  let worker: { close(): Promise<void> } | undefined;
  const service = useService({ workers: 0, env: { REQUEST_TIMEOUT_SECONDS: '20' } });
  afterEach(async () => {
    await worker?.close();
    worker = undefined;
  });

  const keys = () => service.keyspace.shard(SHARD);

  /** Posts and waits until it is in the queue; the answer comes once a worker has been started. */
  async function postAndWait(
    tenant: TestTenant,
    post: typeof postChat = postChat,
  ): Promise<{ requestId: string; answer: Promise<Response> }> {
    const prefix = keys().record('');
    const known = new Set(await service.redis.keys(`${prefix}*`));
    const answer = post(service.app, tenant.key, chatOf('Tell me a story')).then((response) => response);
    const requestId = await waitFor(async () => {
      const fresh = (await service.redis.keys(`${prefix}*`)).find((key) => !known.has(key));
      return fresh?.slice(prefix.length);
    }, 'the record');
    await waitFor(() => service.redis.zscore(keys().prioritized('interactive'), requestId), 'the job');
    return { requestId, answer };
  }

  async function removeJob(requestId: string): Promise<void> {
    await service.redis.zrem(keys().prioritized('interactive'), requestId);
    await service.redis.del(`${keys().tag}:interactive:${requestId}`);
  }

  /** Its owner has been silent for too long. */
  const letExpire = (requestId: string) => service.redis.zadd(keys().inflight, 'XX', 1, requestId);

  /** Claims as a worker that dies afterwards; returns its writing end. */
  async function claimAndDie(requestId: string, text?: string): Promise<DeliveryRef> {
    const requests = createRequestStore(service.redis, service.keyspace, { leaseMs: 1, disconnectGraceMs: 30_000 });
    const body = (await service.redis.get(keys().body(requestId))) ?? '';
    // Written by the ingress of this test.
    const { tenantId, keyId } = JSON.parse(body) as RequestEnvelope;
    const queue = 'interactive' as const;
    const ref = { shard: SHARD, requestId, tenantId, keyId, queue, fence: 1 };
    await requests.claim(ref);
    if (text !== undefined) await requests.append(ref, 1, [text]);
    await letExpire(requestId);
    return ref;
  }

  const startWorker = async () => {
    worker = await service.startWorker();
  };
  const callsOf = (requestId: string) => service.provider.request(requestId)?.calls ?? 0;

  it('or never got its body is answered 503 and costs nothing', async () => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant);
    await removeJob(requestId);
    await service.redis.del(keys().body(requestId));
    await letExpire(requestId);

    await startWorker();
    const response = await answer;

    expect(response.status).toBe(503);
    expect(errorOf(response)).toMatchObject({ code: 'model_unavailable' });
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
    await expectUncharged(service, tenant.tenantId, CREDITS);
    expect(callsOf(requestId)).toBe(0);
  });

  it('or never got its job is answered all the same', async () => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant);
    await removeJob(requestId);
    await letExpire(requestId);

    await startWorker();
    const response = await answer;

    expect(response.status).toBe(200);
    expect(callsOf(requestId)).toBe(1);
    expect(await ledgerOf(service, response)).toMatchObject({ requestId, estimated: false });
  });

  it.each<[string, (requestId: string) => Promise<unknown>]>([
    ['is gone', (requestId) => removeJob(requestId)],
    [
      'BullMQ gave up',
      async (requestId) => {
        await service.redis.zrem(keys().prioritized('interactive'), requestId);
        await service.redis.zadd(`${keys().tag}:interactive:failed`, Date.now(), requestId);
      },
    ],
  ])('before any text is run again, and charged once, where its job %s', async (_how, lose) => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant);
    await claimAndDie(requestId);
    await lose(requestId);

    await startWorker();
    const response = await answer;

    expect(response.status).toBe(200);
    expect(callsOf(requestId)).toBe(1);
    const entry = await ledgerOf(service, response);
    expect(await service.models.ledger.countDocuments({ tenantId: tenant.tenantId, type: 'usage' })).toBe(1);
    expect(entry.amountMicro).toBe(-response.body.usage.total_tokens * 1_000_000);
  });

  it('after text ends with the typed error and is charged a flagged estimate of what was sent', async () => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant, postStream);
    await claimAndDie(requestId, 'Once upon a time there was');

    await startWorker();
    const response = await answer;

    const events = parseSse(String(response.body));
    expect(textOf(events)).toBe('Once upon a time there was');
    expect(events.map(({ id }) => id)).toEqual([1, 2]);
    const usage = { prompt_tokens: expect.any(Number), completion_tokens: 6 };
    expect(events.at(-1)?.chunk).toMatchObject({
      choices: [{ delta: {}, finish_reason: 'error' }],
      usage,
      error: { code: 'model_unavailable', request_id: requestId },
    });
    expect(callsOf(requestId)).toBe(0);
    expect(await ledgerOf(service, response)).toMatchObject({
      completionTokens: 6,
      estimated: true,
      finishReason: 'error',
    });
  });

  it('and took three of them with it is ended without another try', async () => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant);
    await claimAndDie(requestId);
    await removeJob(requestId);
    await service.redis.hset(keys().record(requestId), 'fence', 3);

    await startWorker();
    const response = await answer;

    expect(response.status).toBe(503);
    expect(callsOf(requestId)).toBe(0);
    await expectUncharged(service, tenant.tenantId, CREDITS);
  });

  it.each([
    ['waited in the queue', false],
    ['was being run', true],
  ])('and whose deadline passed while it %s is answered 504 without a provider call', async (_while, wasRunning) => {
    const tenant = await service.startTenant({ credits: CREDITS });
    const { requestId, answer } = await postAndWait(tenant);
    if (wasRunning) await claimAndDie(requestId);
    await service.redis.hset(keys().record(requestId), 'deadline', 1);

    await startWorker();
    const response = await answer;

    expect(response.status).toBe(504);
    expect(errorOf(response)).toMatchObject({ code: 'timeout' });
    expect(callsOf(requestId)).toBe(0);
    await expectUncharged(service, tenant.tenantId, CREDITS);
  });
});
