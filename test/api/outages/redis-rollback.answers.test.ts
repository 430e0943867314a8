import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, waitFor, waitUntil } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useRollback } from '../../support/use-rollback.ts';

/** What a worker reads of an ended request to store its answer, in Redis's protocol: nothing else names these in a row. */
const READ_OF_THE_END = ['startedAt', 'firstTokenAt', 'finishedAt']
  .map((name) => `$${name.length}\r\n${name}\r\n`)
  .join('');

/** Redis has taken the end and the charge, and dies before the worker has read the answer that it is to store. */
describe('a request of which Redis has lost everything, behind its end', () => {
  const { proxy, service, snapshot, rollBack } = useRollback();

  const usageOf = (tenantId: string) => service.models.ledger.find({ tenantId, type: 'usage' }).lean();

  /** A worker that has stored its answer reads nothing of it any more, which the next test would take for its own. */
  const isStored = (tenantId: string) =>
    waitFor(async () => (await service.models.answers.exists({ tenantId })) ?? undefined, 'the answer', 20_000);

  /** Sends a request, and lets Redis forget it and its end. Resolves with what its caller got, once all is back. */
  async function forgetting(tenantId: string, send: () => request.Test): Promise<request.Response> {
    const before = await snapshot();
    // The worker comes back only with Redis, and the caller's ingress is not cut off: it may not have its answer yet.
    const lost = proxy.cutNextReply(READ_OF_THE_END).then(() => {
      proxy.set('silent', 'new');
    });
    const answered = await send();
    await lost;
    await rollBack(before);
    await waitUntil(async () => (await usageOf(tenantId)).length > 0, 'the charge', 20_000);
    await isStored(tenantId);
    return answered;
  }

  it('can be looked up where it was asynchronous', async () => {
    const { tenantId, key } = await service.startTenant();
    const api = apiOf(service, key);
    const accepted = await forgetting(tenantId, () =>
      request(service.app)
        .post('/platform/v1/chat')
        .auth(key, { type: 'bearer' })
        .set('Prefer', 'respond-async')
        .send(chatOf('Later')),
    );
    const { id } = accepted.body as { id: string };
    expect(accepted.status).toBe(202);

    const found = await api('get', `/chat/${id}`);

    const [charge, ...others] = await usageOf(tenantId);
    expect([found.status, found.body.status, others]).toEqual([200, 'completed', []]);
    expect(found.body.usage).toMatchObject({
      prompt_tokens: charge?.promptTokens,
      completion_tokens: charge?.completionTokens,
    });
  });

  it.each(['/chat', '/chat/stream'])('is not run and charged again under its Idempotency-Key: %s', async (path) => {
    const { tenantId, key } = await service.startTenant();
    const send = () =>
      request(service.app)
        .post(`/platform/v1${path}`)
        .auth(key, { type: 'bearer' })
        .set('Idempotency-Key', 'once')
        .send(chatOf('Only once'));
    const first = await forgetting(tenantId, send);

    // An ingress that is not connected again yet answers 503, which is for the caller to send again.
    const second = await waitFor(async () => {
      const answer = await send();
      return answer.status === 503 ? undefined : answer;
    }, 'the answer');

    expect([first.status, second.status, second.headers['idempotent-replayed']]).toEqual([200, 200, 'true']);
    expect(second.text).toBe(first.text);
    expect(await usageOf(tenantId)).toHaveLength(1);
  });
});
