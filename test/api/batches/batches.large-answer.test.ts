import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { itemOf, postLines, resultsOf } from '../../support/batch-client.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import { useService, useStarted } from '../../support/use-service.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

/** Each becomes a replacement character, of three bytes. */
const NO_UTF8 = Buffer.alloc(7_000_000, 0xff);

describe('a line whose provider sends more than any answer has', () => {
  const provider = useStarted('provider', startScriptedServer);
  // Its worker is started once it finds the provider.
  const service = useService({ workers: 0 });

  it('fails, and holds up no other batch', async () => {
    await service.setProvider({ kind: 'openai', base_url: provider.url, api_key: 'k', max_retries: 0 }, 'large');
    await service.setTargets('oloid', [{ provider: 'large', model: 'm', context_window: 128_000 }]);
    await service.startWorker();
    provider.answer((res) => {
      res.setHeader('Content-Type', 'application/json');
      res.write('{"choices":[{"index":0,"message":{"content":"');
      res.write(NO_UTF8);
      res.end('"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}');
    });
    const [one, other] = [await service.startTenant(), await service.startTenant()];
    const large = await postLines(service, one.key, [itemOf('large', { model: 'oloid' })]);
    await waitUntil(() => provider.requests.length > 0, 'the call');

    const small = await postLines(service, other.key, [itemOf('small', { model: 'mobius' })]);

    async function ended(key: string, batchId: string) {
      const { body } = await request(service.app).get(`/platform/v1/batches/${batchId}`).auth(key, { type: 'bearer' });
      return body.status === 'completed' ? body : undefined;
    }
    await waitFor(() => ended(other.key, String(small.body.id)), 'the end of the small batch', 15_000);
    expect(await resultsOf(service, other.key, String(small.body.id))).toMatchObject([{ custom_id: 'small' }]);
    await request(service.app)
      .post(`/platform/v1/batches/${String(large.body.id)}/cancel`)
      .auth(one.key, { type: 'bearer' });
    expect(await service.models.ledger.countDocuments({ tenantId: one.tenantId, type: 'usage' })).toBe(0);
  });
});
