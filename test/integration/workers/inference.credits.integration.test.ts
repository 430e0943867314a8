import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, errorOf, ledgerOf, postChat, postStream, waitFor } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('credits that run out', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  /** The tenant's figures once nothing is held and everything is settled. */
  async function atRest(tenantId: string): Promise<{ balance: number; spent: number }> {
    const { balance } = await waitFor(async () => {
      const { body } = await service.admin('get', `/tenants/${tenantId}`);
      const waiting = await service.redis.hlen(service.keyspace.shard(0).pending(tenantId));
      return body.held === 0 && waiting === 0 ? body : undefined;
    }, 'rest');
    const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    return { balance, spent: rows.reduce((sum, row) => sum - row.amountMicro, 0) / 1_000_000 };
  }

  it.each([
    ['a stream', postStream],
    ['a complete answer', postChat],
  ] as const)(
    'in the middle of %s end it with finish_reason length, charged for what there is',
    async (_kind, post) => {
      // 400 tokens until the first renewal, which then asks for as many again.
      service.provider.change({ tokens: 2_000, chunks: 100, chunk_ms: 150 });
      const { key, tenantId } = await service.startTenant({ credits: 600 });

      const response = await post(service.app, key, chatOf('A long story'));

      expect(response.status).toBe(200);
      const said = typeof response.body === 'string' ? response.body : JSON.stringify(response.body);
      expect(said).toContain('"finish_reason":"length"');
      expect(await ledgerOf(service, response)).toMatchObject({ finishReason: 'length', estimated: true });
      const { balance, spent } = await atRest(tenantId);
      expect(spent).toBeGreaterThan(100);
      // At most one renewal interval of output beyond the balance (E7 of the fault experiments): here 400 tokens, of
      // which our own estimate may make twice as many.
      expect(spent).toBeLessThanOrEqual(600 + 2 * 400);
      expect(balance).toBeCloseTo(600 - spent, 6);
    },
  );

  it('do not end an answer that they cover, however little is left beside it', async () => {
    // Four seconds: the renewal after three asks for 100 tokens more than there are.
    service.provider.change({ tokens: 40, chunks: 40, chunk_ms: 100 });
    const { key, tenantId } = await service.startTenant({ credits: 60 });

    const response = await postStream(service.app, key, chatOf('A short story'));

    expect(response.status).toBe(200);
    expect(String(response.body)).toContain('"finish_reason":"stop"');
    expect((await atRest(tenantId)).balance).toBeGreaterThan(0);
  });

  it('admit one request whatever it costs, and end it with finish_reason length when its text has come', async () => {
    service.provider.change({ tokens: 2_000, chunks: 100, chunk_ms: 150, first_token_ms: 3_300 });
    const { key, tenantId } = await service.startTenant({ credits: 1 });

    const response = await postStream(service.app, key, chatOf('Forty bytes of prompt make ten tokens.'));

    expect(response.status).toBe(200);
    expect(String(response.body)).toContain('"finish_reason":"length"');
    const { balance, spent } = await atRest(tenantId);
    expect(spent).toBeGreaterThan(10);
    expect(balance).toBeCloseTo(1 - spent, 6);
  });

  it('before any text are a 402, and nothing is charged', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 5_000 });
    const talk = (content: string) =>
      postChat(service.app, key, chatOf(content, { entity_id: 'pupil-1', max_tokens: 50 }));
    await talk('A long beginning. '.repeat(100));
    const { balance } = await atRest(tenantId);
    await service.admin('post', `/tenants/${tenantId}/credits`, { credits: 100 - balance, reason: 'adjustment' });

    // Admission holds what the submitted message may cost; the worker finds the history.
    const response = await talk('Go on');

    expect(response.status).toBe(402);
    expect(errorOf(response)).toMatchObject({ code: 'insufficient_credits', type: 'billing_error' });
    expect((await atRest(tenantId)).balance).toBe(100);
    expect(await service.models.ledger.countDocuments({ tenantId, type: 'usage' })).toBe(1);
  });
});
