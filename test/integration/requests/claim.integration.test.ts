import { describe, expect, it } from '@jest/globals';

import { createQueueOrderStore } from '../../../shared/requests/body-store.ts';
import { LEASE_MS, openRequestLab, RATE, REQUEST_TIMEOUT_MS, SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

describe('claiming', () => {
  const lab = useStarted('lab', openRequestLab);

  it('gives the body as the ingress stored it, however long, and whatever characters it has', async () => {
    // Of one, two, three and four bytes, with what JSON escapes and half a pair.
    const content = 'Ein "Fluß"\n\\ 河 🏞 \u0001 \ud800 '.repeat(4_000);
    const { requestId, principal, envelope, ref } = await lab.admit({ withoutBody: true });
    const messages = [{ role: 'user' as const, content }];
    const body = JSON.stringify({ ...envelope, request: { ...envelope.request, messages } });
    const queueOrder = createQueueOrderStore(lab.redis, lab.keyspace, REQUEST_TIMEOUT_MS);
    const enqueue = () => queueOrder.enqueue(SHARD, 'interactive', { requestId, tenantId: principal.tenantId, body });

    // The answer to the first call may have been lost.
    expect([await enqueue(), await enqueue()]).toEqual(['accepted', 'accepted']);

    const claimed = await lab.requests.claim(ref(1));
    expect(claimed).toMatchObject({ kind: 'run', envelope: { request: { messages } } });
    expect(await enqueue()).toBe('running');
  });

  it('tells what the request may cost, how long it has and that nothing was sent', async () => {
    const principal = await lab.tenant(1_000 * RATE);
    const request = await lab.admit({ principal, promptTokens: 10, maxTokens: 90 });

    const claim = await lab.run(request, 1);

    expect(claim).toMatchObject({
      envelope: request.envelope,
      held: { micro: 100 * RATE, tokens: Infinity },
      rates: { promptMicro: RATE, completionMicro: RATE },
      sent: 0,
      cancelled: false,
      seq: request.admission.seq,
    });
    expect(claim.remainingMs).toBeLessThanOrEqual(REQUEST_TIMEOUT_MS);
    expect(claim.remainingMs).toBeGreaterThan(REQUEST_TIMEOUT_MS - 5_000);
  });

  it('claiming tells what the delivery before had asked', async () => {
    const request = await lab.admit();
    await lab.run(request, 1);
    await lab.requests.append(request.ref(1), 1, ['a'], { promptTokens: 1_234 });
    await lab.requests.append(request.ref(1), 2, ['b'], { promptTokens: 9 });

    expect((await lab.run(request, 2)).promptTokens).toBe(1_234);
  });

  it('takes no more than a sixteenth of what is left where it is not, so that a neighbour is let in', async () => {
    const principal = await lab.tenant((510 + 1_600) * RATE, { monthlyTokenBudget: 510 + 320 });
    const request = await lab.admit({ principal, maxTokens: 16_000 });

    expect(await lab.run(request, 1)).toMatchObject({ held: { micro: 610 * RATE, tokens: 530 } });
  });

  it('has a lease that the sweep watches: from admission where it starts at once, from the claim where it starts late', async () => {
    const prompt = await lab.admit();
    const { now } = await lab.run(prompt, 1);
    const leaseOf = async (requestId: string) => Number(await lab.redis.zscore(lab.keys.inflight, requestId));
    const fromAdmission = await leaseOf(prompt.requestId);
    expect(fromAdmission).toBeGreaterThan(now + LEASE_MS - 1_000);
    expect(fromAdmission).toBeLessThanOrEqual(now + LEASE_MS);

    const takenOver = await lab.run(prompt, 2);
    expect(await leaseOf(prompt.requestId)).toBe(takenOver.now + LEASE_MS);
  });

  it('keeps the time of the first start when the request is taken over', async () => {
    const request = await lab.admit();
    await lab.run(request, 1);
    const startedAt = await lab.redis.hget(lab.keys.record(request.requestId), 'startedAt');
    await lab.run(request, 2);

    expect(startedAt).not.toBeNull();
    expect(await lab.redis.hget(lab.keys.record(request.requestId), 'startedAt')).toBe(startedAt);
  });

  it('drops a request that nobody knows, and leaves no trace of it', async () => {
    const before = await lab.snapshot();

    expect(
      await lab.requests.claim({ shard: SHARD, requestId: 'req_unknown', tenantId: 'ten_unknown', fence: 1 }),
    ).toEqual({ kind: 'drop', reason: 'drop missing' });
    expect(await lab.snapshot()).toEqual(before);
  });
});
