import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { chatOf, ledgerOf, postChat, postStream } from '../support/chat.ts';
import { startScriptedServer } from '../support/scripted-server.ts';
import type { ScriptedServer } from '../support/scripted-server.ts';
import { apiOf } from '../support/tenant-api.ts';
import { useService } from '../support/use-service.ts';

const CREDIT = 1_000_000;
const BILLION = 1_000_000_000;
/** Three tokens by the service's own tokenizer, and four for the message. */
const PROMPT = 'Say five words';
const PROMPT_TOKENS = 3 + 4;
const TEXT = 'one two three four five';
const TEXT_TOKENS = 5;

interface Said {
  prompt: number;
  completion: number;
  /** Of OpenAI's dialect: counted beside the completion. */
  reasoning?: number;
  /** By default TEXT. */
  text?: string;
}

const sse = (...events: unknown[]) =>
  events.map((event) => `data: ${event === '[DONE]' ? event : JSON.stringify(event)}\n\n`).join('');

/** OpenAI's dialect. */
function completionOf({ prompt, completion, reasoning, text = TEXT }: Said, stream: boolean): string {
  const counts = { prompt_tokens: prompt, completion_tokens: completion };
  const beside = { completion_tokens_details: { reasoning_tokens: reasoning } };
  const usage =
    reasoning === undefined ? counts : { ...counts, ...beside, total_tokens: prompt + completion + reasoning };
  const choice = (part: object) => [{ index: 0, ...part, finish_reason: 'stop' }];
  return stream
    ? sse({ choices: choice({ delta: { content: text } }) }, { choices: [], usage }, '[DONE]')
    : JSON.stringify({ choices: choice({ message: { content: text } }), usage });
}

/** Anthropic's. */
function messageOf({ prompt, completion, text = TEXT }: Said, stream: boolean): string {
  const usage = { input_tokens: prompt, output_tokens: completion };
  return stream
    ? sse(
        { type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
        { type: 'message_stop' },
      )
    : JSON.stringify({ content: [{ type: 'text', text }], stop_reason: 'end_turn', usage });
}

/** `mobius` speaks OpenAI's protocol, `oloid` Anthropic's at four times the price. */
describe('a provider’s count of tokens', () => {
  let server: ScriptedServer;
  let said: Said;
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    server = await startScriptedServer();
    server.answer((res, req) => {
      const stream = (JSON.parse(server.requests.at(-1)?.body ?? '') as { stream?: boolean }).stream === true;
      res.end((req.url?.endsWith('/messages') === true ? messageOf : completionOf)(said, stream));
    });
    await service.setProvider({ kind: 'openai', base_url: `${server.url}/v1` }, 'completions');
    await service.setProvider({ kind: 'anthropic', base_url: `${server.url}/v1` }, 'messages');
    await service.setTargets('mobius', [{ provider: 'completions', model: 'm' }]);
    await service.setTargets('oloid', [{ provider: 'messages', model: 'm' }]);
    await service.startWorker();
  });
  beforeEach(() => {
    said = { prompt: PROMPT_TOKENS, completion: TEXT_TOKENS };
  });
  afterAll(async () => {
    expect(service.log.errors()).toEqual([]);
    await server.close();
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
      said = { ...said, ...wrong };
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

    it('is cut at max_tokens', async () => {
      said = { ...said, completion: 12 };
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: 10 }));

      expect(await ledgerOf(service, response)).toMatchObject({ completionTokens: 10, estimated: true });
    });

    it('may be above ours by what a provider adds to the prompt, and by what it thinks unseen', async () => {
      said = { prompt: PROMPT_TOKENS + 2_000, completion: 900 };
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: 1_000 }));

      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: said.prompt,
        completionTokens: said.completion,
        estimated: false,
      });
    });

    it('of zero beside text is not believed: the service counts itself', async () => {
      said = { prompt: 0, completion: 0 };
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model }));

      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: PROMPT_TOKENS,
        completionTokens: TEXT_TOKENS,
        estimated: true,
      });
    });

    it.each([
      ['is charged for an answer without text that was reasoned', 40, { completionTokens: 40, estimated: false }],
      ['is charged up to max_tokens for reasoning without text', 1, { completionTokens: 1, estimated: true }],
    ])('%s', async (_what, maxTokens, expected) => {
      said = { prompt: PROMPT_TOKENS, completion: 40, text: '' };
      const { key } = await service.startTenant();

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: maxTokens }));

      expect(response.status).toBe(200);
      expect(await ledgerOf(service, response)).toMatchObject({
        promptTokens: PROMPT_TOKENS,
        ...expected,
        amountMicro: -(PROMPT_TOKENS + expected.completionTokens) * rate * CREDIT,
      });
    });

    it('beyond the balance takes 200 tokens more than there is, and no more', async () => {
      said = { prompt: PROMPT_TOKENS + 2_000, completion: TEXT_TOKENS };
      const { key, tenantId } = await service.startTenant({ credits: 300 });

      const response = await post(service.app, key, chatOf(PROMPT, { model, max_tokens: 10 }));

      const taken = 300 + 200 * rate;
      expect(await ledgerOf(service, response)).toMatchObject({ estimated: true, amountMicro: -taken * CREDIT });
      expect((await service.admin('get', `/tenants/${tenantId}`)).body.balance).toBe(-200 * rate);
    });
  });

  it.each([
    ['counts on top', 1_000, { completionTokens: TEXT_TOKENS + 300, estimated: false }],
    ['is cut at max_tokens, not lost', 100, { completionTokens: 100, estimated: true }],
  ])('of reasoning beside the completion %s', async (_what, maxTokens, expected) => {
    said = { ...said, reasoning: 300 };
    const { key } = await service.startTenant();

    for (const post of [postChat, postStream]) {
      const response = await post(service.app, key, chatOf(PROMPT, { max_tokens: maxTokens }));

      expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: PROMPT_TOKENS, ...expected });
    }
  });

  it('that cannot be true shuts nobody out: budget, token window and allowance count what is believed', async () => {
    said = { prompt: BILLION, completion: BILLION };
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

  it('that cannot be true is one line in the log', async () => {
    said = { prompt: BILLION, completion: 1 };
    const { key } = await service.startTenant();
    const before = service.log.lines.length;

    await ledgerOf(service, await postChat(service.app, key, chatOf(PROMPT)));

    expect(service.log.lines.slice(before).filter(({ message }) => message.includes('cannot be true'))).toMatchObject([
      { level: 'warn', fields: { provider: 'completions' } },
    ]);
  });

  it('is not needed for the promise: text beyond max_tokens is not charged', async () => {
    said = { prompt: BILLION, completion: 0 };
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf(PROMPT, { max_tokens: 2 }));

    expect(await ledgerOf(service, response)).toMatchObject({ completionTokens: 2, estimated: true });
  });
});
