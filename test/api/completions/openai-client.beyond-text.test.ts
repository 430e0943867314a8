import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';

import { waitFor } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

/** `npm run test:clients` has the same for all clients, on the processes. */
describe('the official openai client, beyond text', () => {
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    // `oloid` speaks Anthropic's protocol.
    await service.setProvider({ kind: 'anthropic' }, 'messages');
    await service.setTargets('oloid', [{ provider: 'messages', model: 'sim' }]);
    await service.startWorker();
  });
  afterEach(() => {
    service.provider.restore();
  });

  const clientFor = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${service.url}/platform/v1`, maxRetries: 0 });
  const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const heard: string[] = [];
  const weather = {
    type: 'function' as const,
    function: {
      name: 'weather',
      description: 'The weather of a city.',
      parameters: city,
      parse: (given: string) => JSON.parse(given) as { city: string },
      function: (asked: { city: string }) => {
        heard.push(asked.city);
        return `${asked.city}: 7 degrees`;
      },
    },
  };
  const asking = (content: string, model = 'mobius') => ({ model, messages: [{ role: 'user' as const, content }] });
  const TWO = 'simulate-tool=weather{"city":"Oslo"} simulate-tool=weather{"city":"Rome"}';
  const marked = asking(TWO);
  const entriesOf = (tenantId: string) =>
    waitFor(async () => {
      const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
      return rows.length > 0 ? rows : undefined;
    }, 'the ledger entry');
  const ANSWER = 'The tool weather says: “Oslo: 7 degrees” The tool weather says: “Rome: 7 degrees”';

  it.each([
    ['mobius', false],
    ['mobius', true],
    ['oloid', false],
    ['oloid', true],
  ])('has two calls of %s made at once, and their results read, as a stream: %s', async (model, stream) => {
    const { key } = await service.startTenant();
    heard.length = 0;

    const { completions } = clientFor(key).chat;
    const asked = { ...asking(TWO, model), tools: [weather] };
    const runner = stream ? completions.runTools({ ...asked, stream }) : completions.runTools(asked);

    expect(await runner.finalContent()).toBe(ANSWER);
    expect(heard).toEqual(['Oslo', 'Rome']);
  });

  it.each(['mobius', 'oloid'])('has each token of calls of %s charged once', async (model) => {
    const { key, tenantId } = await service.startTenant();
    const { type, function: about } = weather;
    const tools = [{ type, function: { name: about.name, parameters: about.parameters } }];

    const { id, choices, usage } = await clientFor(key).chat.completions.create({ ...asking(TWO, model), tools });
    const message = choices[0]?.message;

    expect(choices[0]?.finish_reason).toBe('tool_calls');
    expect(message).toMatchObject({ content: null, tool_calls: [{ type: 'function' }, { type: 'function' }] });
    const { prompt_tokens: prompt, completion_tokens: completion } = service.provider.request(id) ?? {};
    expect(usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: completion });
    expect(await entriesOf(tenantId)).toMatchObject([
      { requestId: id, promptTokens: prompt, completionTokens: completion },
    ]);
  });

  it.each(['mobius', 'oloid'])('reads an object of its schema, and reasoning before a text, of %s', async (model) => {
    const { key } = await service.startTenant();
    const { completions } = clientFor(key).chat;
    const schema = { ...city, additionalProperties: false };

    const format = { type: 'json_schema' as const, json_schema: { name: 'place', strict: true, schema } };
    const typed = await completions.parse({ ...asking('Where?', model), response_format: format });
    const reasoned = await completions.create(asking('Why? simulate-reasoning', model));

    expect(JSON.parse(typed.choices[0]?.message.content ?? '')).toEqual({ city: 'city' });
    expect(reasoned.choices[0]?.message).toMatchObject({ reasoning_content: expect.stringMatching(/^First I look/) });
  });

  it('sends images', async () => {
    service.provider.change({ echo: true });
    const { key } = await service.startTenant();
    const image = { type: 'image_url' as const, image_url: { url: 'https://example.com/a.png' } };
    const parts = [{ type: 'text' as const, text: 'Compare.' }, image, image];

    const { choices } = await clientFor(key).chat.completions.create({
      model: 'mobius',
      messages: [{ role: 'user', content: parts }],
    });

    expect(choices[0]?.message.content).toBe('I see 2 images. Compare.');
  });

  it('may leave a stream of calls, which is then still charged once', async () => {
    service.provider.change({ chunk_ms: 20 });
    const { key, tenantId } = await service.startTenant({ tenant: { on_disconnect: 'finish' } });
    const { type, function: about } = weather;
    const tools = [{ type, function: { name: about.name, parameters: about.parameters } }];

    const stream = await clientFor(key).chat.completions.create({ ...marked, tools, stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.tool_calls !== undefined) break;

    expect(await entriesOf(tenantId)).toHaveLength(1);
  });
});
