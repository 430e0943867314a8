import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, expectUncharged, ledgerOf, postChat, postStream, requestIdOf } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

const CREDIT = 1_000_000;

describe('what a provider says of its usage', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('is booked to the token and not flagged (%s)', async (_kind, post) => {
    const { key, tenantId } = await service.startTenant();

    const response = await post(service.app, key, chatOf('Count', { model: 'oloid', entity_id: 'pupil 1' }));

    const counted = service.provider.request(requestIdOf(response));
    const tokens = (counted?.prompt_tokens ?? 0) + (counted?.completion_tokens ?? 0);
    expect(await ledgerOf(service, response)).toMatchObject({
      tenantId,
      entityId: 'pupil 1',
      tier: 'oloid',
      provider: 'simulated',
      model: 'sim',
      promptTokens: counted?.prompt_tokens,
      completionTokens: counted?.completion_tokens,
      estimated: false,
      amountMicro: -4 * tokens * CREDIT,
      finishReason: 'stop',
    });
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('is counted here and flagged where it says nothing (%s)', async (_kind, post) => {
    service.provider.change({ usage: 'absent', text: 'one two three four five' });
    const { key } = await service.startTenant();

    const response = await post(service.app, key, chatOf('Say five words'));

    expect(response.status).toBe(200);
    expect(await ledgerOf(service, response)).toMatchObject({
      estimated: true,
      promptTokens: 3 + 4,
      completionTokens: 5,
      amountMicro: -12 * CREDIT,
    });
  });

  it.each([
    ['complete', postChat],
    ['streamed', postStream],
  ])('is not charged for an answer without text (%s)', async (_kind, post) => {
    service.provider.change({ fail: 'empty' });
    const { key, tenantId } = await service.startTenant({ credits: 10_000 });

    const response = await post(service.app, key, chatOf('Nothing'));

    expect(response.status).toBe(200);
    await expectUncharged(service, tenantId, 10_000);
  });

  it('is summed to the token over mixed requests at once', async () => {
    service.provider.reset();
    const { key, tenantId } = await service.startTenant();

    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? postChat : postStream)(service.app, key, chatOf(`Number ${index}`)),
      ),
    );

    await Promise.all(responses.map((response) => ledgerOf(service, response)));
    const entries = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
    const stats = service.provider.stats();
    expect(stats).toMatchObject({ calls: 40, completed: 40 });
    expect(entries).toHaveLength(40);
    expect(entries.reduce((sum, { promptTokens = 0 }) => sum + promptTokens, 0)).toBe(stats.prompt_tokens);
    expect(entries.reduce((sum, { completionTokens = 0 }) => sum + completionTokens, 0)).toBe(stats.completion_tokens);
  });
});
