import { describe, expect, it } from '@jest/globals';

import { chatOf, postChat, waitFor } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('POST /chat', () => {
  const service = useService();

  it('answers with one completion, its usage and the caller’s metadata', async () => {
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Hello', { metadata: { order: [1, { deep: true }] } }));

    expect(response.status).toBe(200);
    expect(response.body).toMatchObject({
      id: response.headers['x-request-id'],
      object: 'chat.completion',
      model: 'mobius',
      choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'stop' }],
      metadata: { order: [1, { deep: true }] },
    });
    const { usage, choices } = response.body;
    expect(choices[0].message.content.length).toBeGreaterThan(10);
    expect(usage.total_tokens).toBe(Number(usage.prompt_tokens) + Number(usage.completion_tokens));
  });

  it('books exactly what the provider counted, once', async () => {
    const { key, tenantId } = await service.startTenant({ credits: 5_000 });

    const response = await postChat(service.app, key, chatOf('Count me'));

    const requestId = String(response.headers['x-request-id']);
    const entry = await waitFor(() => service.models.ledger.findOne({ requestId }).lean(), 'the ledger entry');
    const counted = service.provider.request(requestId);
    expect(entry).toMatchObject({
      tenantId,
      promptTokens: counted?.prompt_tokens,
      completionTokens: counted?.completion_tokens,
    });
    const tenant = await waitFor(async () => {
      const { body } = await service.admin('get', `/tenants/${tenantId}`);
      return body.held === 0 && body.balance < 5_000 ? body : undefined;
    }, 'the balance');
    expect(tenant.balance).toBe(5_000 - response.body.usage.total_tokens);
  });
});
