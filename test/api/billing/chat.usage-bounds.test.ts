import { afterAll, describe, expect, it } from '@jest/globals';

import { chatOf, ledgerOf, postChat, postStream } from '../../support/chat.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTwoProtocols } from '../../support/two-protocols.ts';
import { useService } from '../../support/use-service.ts';

const CREDIT = 1_000_000;
const BILLION = 1_000_000_000;
/** Three tokens by the service's own tokenizer, and four for the message. */
const PROMPT = 'Say five words';
const PROMPT_TOKENS = 3 + 4;
const TEXT = 'one two three four five';
const TEXT_TOKENS = 5;

describe('a provider’s count of tokens', () => {
  const SAID = { prompt: PROMPT_TOKENS, completion: TEXT_TOKENS, texts: [TEXT] };
  const service = useService({ workers: 0 });
  const { say } = useTwoProtocols(service);
  afterAll(() => {
    expect(service.log.errors()).toEqual([]);
  });

  describe.each([
    ['a complete answer in OpenAI’s protocol', 'mobius', postChat, 1],
    ['a stream in OpenAI’s protocol', 'mobius', postStream, 1],
    ['a complete answer in Anthropic’s protocol', 'oloid', postChat, 4],
    ['a stream in Anthropic’s protocol', 'oloid', postStream, 4],
  ] as const)('of %s', (_what, model, post, rate) => {
    it.each([
      ['the prompt', { prompt: BILLION }],
      ['the answer', { completion: BILLION }],
      ['both', { prompt: BILLION, completion: BILLION }],
    ])('that cannot be true of %s is not believed: the service counts itself', async (_of, wrong) => {
      say({ ...SAID, ...wrong });
      const { key, tenantId } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model }));

      const tokens = PROMPT_TOKENS + TEXT_TOKENS;
      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: PROMPT_TOKENS,
        completionTokens: TEXT_TOKENS,
        estimated: true,
        amountMicro: -tokens * rate * CREDIT,
      });
      expect((await service.admin('get', `/tenants/${tenantId}`)).body.balance).toBe(1_000_000 - tokens * rate);
    });

    it.each([
      ['is charged for an answer without text that was reasoned', 40, { completionTokens: 40, estimated: false }],
      ['is charged up to max_tokens for reasoning without text', 1, { completionTokens: 1, estimated: true }],
    ])('%s', async (_what, maxTokens, expected) => {
      say({ ...SAID, prompt: PROMPT_TOKENS, completion: 40, texts: [''] });
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: maxTokens }));

      expect(response.status).toBe(200);
      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: PROMPT_TOKENS,
        ...expected,
        amountMicro: -(PROMPT_TOKENS + expected.completionTokens) * rate * CREDIT,
      });
    });

    it('beyond the balance takes what there is, and no more', async () => {
      say({ ...SAID, prompt: PROMPT_TOKENS + 2_000, completion: TEXT_TOKENS });
      const { key, tenantId } = await service.startTenant({ credits: 300 });

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: 10 }));

      const tokens = 300 / rate;
      const said = typeof response.body === 'string' ? response.body : JSON.stringify(response.body);
      expect(said).toContain(`"total_tokens":${tokens}`);
      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: tokens,
        completionTokens: 0,
        estimated: true,
        amountMicro: -300 * CREDIT,
      });
      expect((await service.admin('get', `/tenants/${tenantId}`)).body.balance).toBe(0);
    });
  });

  it.each([
    ['counts on top', 1_000, { completionTokens: TEXT_TOKENS + 300, estimated: false }],
    ['is cut at max_tokens, not lost', 100, { completionTokens: 100, estimated: true }],
  ])('of reasoning beside the completion %s', async (_what, maxTokens, expected) => {
    say({ ...SAID, reasoning: 300 });
    const { key } = await service.startTenant();

    for (const post of [postChat, postStream]) {
      const response = await post(service.app, key, chatOf(PROMPT, { max_tokens: maxTokens }));

      expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: PROMPT_TOKENS, ...expected });
    }
  });

  it('that cannot be true shuts nobody out: budget, token window and allowance count what is believed', async () => {
    say({ ...SAID, prompt: BILLION, completion: BILLION });
    const tenant = { monthly_token_budget: 100_000, tenant_tpm: 100_000 };
    const live = await service.startTenant({ tenant, key: { scopes: ['chat', 'billing'] } });
    const test = await service.startTenant({ key: { mode: 'test', tpm: 100_000 } });

    for (const { key } of [live, test]) {
      const first = await postChat(service.app, key, chatOf(PROMPT));
      await ledgerOf(service, first);
      expect((await postChat(service.app, key, chatOf(PROMPT))).status).toBe(200);
    }

    const { body } = await apiOf(service, live.key)('get', '/billing');
    expect(body.budget.used).toBeLessThan(100);
  });

  it.each([
    ['charged', 1_000_000, { promptTokens: 25_512, completionTokens: TEXT_TOKENS, estimated: false }],
    ['charged as far as credits go', 2_000, { promptTokens: 2_000, completionTokens: 0, estimated: true }],
  ])('of a prompt with an image is believed above its bytes, and %s', async (_what, credits, expected) => {
    say({ ...SAID, prompt: 25_512 });
    const { key } = await service.startTenant({ credits });
    const content = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } }];
    const body = { model: 'mobius', messages: [{ role: 'user', content }], max_tokens: 10 };

    const response = await apiOf(service, key)('post', '/chat/completions', body);

    expect(await ledgerOf(service, response)).toMatchObject(expected);
  });

  it('that cannot be true is one line in the log', async () => {
    say({ ...SAID, prompt: BILLION, completion: 1 });
    const { key } = await service.startTenant();
    const before = service.log.lines.length;

    await ledgerOf(service, await postChat(service.app, key, chatOf(PROMPT)));

    expect(service.log.lines.slice(before).filter(({ message }) => message.includes('cannot be true'))).toMatchObject([
      { level: 'warn', fields: { provider: 'completions' } },
    ]);
  });

  it('is not needed for the promise: text beyond max_tokens is not charged', async () => {
    say({ ...SAID, prompt: BILLION, completion: 0 });
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf(PROMPT, { max_tokens: 2 }));

    expect(await ledgerOf(service, response)).toMatchObject({ completionTokens: 2, estimated: true });
  });
});
