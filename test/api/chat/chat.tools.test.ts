import { beforeAll, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import request from 'supertest';

import { errorOf, ledgerOf, readText, requestIdOf, waitFor } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import { useService, useStarted } from '../../support/use-service.ts';

const FLAGGED = 'parley moderation test';
const TOOLS = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }];
const ASKED = { model: 'mobius', messages: [{ role: 'user' as const, content: 'Weather?' }], tools: TOOLS };
const USAGE = { prompt_tokens: 40, completion_tokens: 17, total_tokens: 57 };

const sse = (...events: (object | '[DONE]')[]) =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const argue = (json: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: json } }] });
const begin = chunk({
  role: 'assistant',
  content: null,
  tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }],
});
const END = [chunk({}, 'tool_calls'), { choices: [], usage: USAGE }, '[DONE]'] as const;
const PIECES = ['{"ci', 'ty":', '"Ber', 'lin 🌧', '"', '}'];
const CALL = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: PIECES.join('') } };

describe('calls of tools', () => {
  const service = useService({ workers: 0 });
  const server = useStarted('server', startScriptedServer);
  beforeAll(async () => {
    await service.setProvider({ kind: 'openai', base_url: `${server.url}/v1`, max_retries: 0 }, 'scripted');
    await service.setTargets('mobius', [{ provider: 'scripted', model: 'm' }]);
    await service.startWorker();
  });

  const stream = (...events: Parameters<typeof sse>) => {
    server.requests.length = 0;
    server.answer((res) => res.end(sse(...events)));
  };
  const document = (message: object, finish: string) => {
    server.requests.length = 0;
    const body = { choices: [{ index: 0, message, finish_reason: finish }], usage: USAGE };
    server.answer((res) => res.end(JSON.stringify(body)));
  };
  const sent = () => server.requests.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  const clientFor = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${service.url}/platform/v1`, maxRetries: 0 });
  const post = (key: string, body: object) =>
    request(service.app).post('/platform/v1/chat/completions').auth(key, { type: 'bearer' }).send(body);
  const get = (key: string, path: string) =>
    request(service.app).get(`/platform/v1${path}`).auth(key, { type: 'bearer' }).buffer(true).parse(readText);
  const streamed = async (key: string) => {
    stream(begin, ...PIECES.map(argue), ...END);
    return post(key, { ...ASKED, stream: true })
      .buffer(true)
      .parse(readText);
  };

  it('make a round trip: the call, its result, the answer', async () => {
    const { key } = await service.startTenant();
    document({ role: 'assistant', content: null, tool_calls: [CALL] }, 'tool_calls');
    const first = await clientFor(key).chat.completions.create(ASKED);

    expect(first.choices[0]).toMatchObject({
      message: { content: null, tool_calls: [CALL] },
      finish_reason: 'tool_calls',
    });
    document({ role: 'assistant', content: 'Rain.' }, 'stop');
    const message = first.choices[0]?.message as OpenAI.ChatCompletionMessage;
    const messages = [...ASKED.messages, message, { role: 'tool' as const, tool_call_id: 'call_1', content: 'rain' }];
    const second = await clientFor(key).chat.completions.create({ ...ASKED, messages });

    expect(second.choices[0]?.message.content).toBe('Rain.');
    expect(sent()).toMatchObject([
      { tools: TOOLS, messages: [{}, { tool_calls: [CALL] }, { role: 'tool', tool_call_id: 'call_1' }] },
    ]);
  });

  it('come in a stream as the provider has cut them, and are charged what it counted', async () => {
    const { key } = await service.startTenant();
    const response = await streamed(key);

    const events = String(response.body).trim().split('\n\n');
    const chunks = events
      .slice(0, -1)
      .map((event) => JSON.parse(event.slice('data: '.length)) as OpenAI.ChatCompletionChunk);
    const cut = chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls?.[0]?.function?.arguments ?? []);
    expect(cut).toEqual(['', ...PIECES]);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');
    expect(await ledgerOf(service, response)).toMatchObject({
      promptTokens: 40,
      completionTokens: 17,
      estimated: false,
      finishReason: 'tool_calls',
    });
  });

  it('are resumed byte for byte after each event, and looked up whole', async () => {
    const { key } = await service.startTenant();
    const response = await streamed(key);
    const id = requestIdOf(response);
    const whole = String((await get(key, `/chat/stream/${id}`)).body);
    const events = whole.split(/(?<=\n\n)/);

    expect(events).toHaveLength(PIECES.length + 3);
    for (const after of events.keys()) {
      const rest = await get(key, `/chat/stream/${id}?starting_after=${after}`);
      expect(rest.body).toBe(events.slice(after).join(''));
    }
    expect(whole.replaceAll(/^id: .*\n/gm, '')).toBe(response.body);
    const lookup = await request(service.app).get(`/platform/v1/chat/${id}`).auth(key, { type: 'bearer' });
    expect(lookup.body.response.choices[0]).toMatchObject({
      message: { content: null, tool_calls: [CALL] },
      finish_reason: 'tool_calls',
    });
  });

  it.each([
    ['a definition', { tools: [{ type: 'function', function: { name: 'f', description: FLAGGED } }] }],
    [
      'arguments, behind JSON’s escapes',
      {
        messages: [
          ...ASKED.messages,
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ ...CALL, function: { name: 'f', arguments: '{"a":"\\u0070arley moderation test"}' } }],
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'x' },
        ],
      },
    ],
    [
      'a result',
      {
        messages: [
          ...ASKED.messages,
          { role: 'assistant', content: null, tool_calls: [CALL] },
          { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: FLAGGED }] },
        ],
      },
    ],
  ])('are refused before a provider is called where moderation flags %s', async (_what, more) => {
    const { key } = await service.startTenant();
    stream(...END);

    const response = await post(key, { ...ASKED, ...more });

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'content_policy_violation' });
    expect(sent()).toEqual([]);
  });

  it('end before flagged arguments', async () => {
    const { key } = await service.startTenant();
    stream(begin, argue('{"city":"'), argue(`a ${FLAGGED}`), argue(' canary"}'), ...END);

    const response = await post(key, { ...ASKED, stream: true })
      .buffer(true)
      .parse(readText);

    expect(response.body).toContain('"finish_reason":"content_filter"');
    expect(response.body).not.toMatch(/moderation|canary/);
  });

  it('that are cancelled amid their arguments are charged for what was sent', async () => {
    const { key } = await service.startTenant();
    server.answer((res) => {
      res.write(sse(begin, argue('{"city":"Berlin and a long list of other cities')));
    });
    const reading = await clientFor(key).chat.completions.create({ ...ASKED, stream: true });
    let id = '';
    let failure: unknown;
    try {
      for await (const { id: requestId } of reading) {
        if (id === '')
          await request(service.app).post(`/platform/v1/chat/${requestId}/cancel`).auth(key, { type: 'bearer' });
        id = requestId;
      }
    } catch (error) {
      failure = error;
    }

    expect(failure).toMatchObject({ code: 'conflict' });
    const entry = await waitFor(() => service.models.ledger.findOne({ requestId: id }).lean(), 'the ledger entry');
    expect(entry).toMatchObject({ finishReason: 'cancelled', estimated: true });
    expect(entry.completionTokens).toBeGreaterThan(0);
  });

  it('leave an entity the words of both sides, and never half of an exchange', async () => {
    const { key } = await service.startTenant();
    const ask = (more: object) => post(key, { ...ASKED, entity_id: 'pupil', ...more }).expect(200);
    document({ role: 'assistant', content: 'Let me look.', tool_calls: [CALL] }, 'tool_calls');
    await ask({});
    document({ role: 'assistant', content: 'Rain.' }, 'stop');
    const exchange = [
      { role: 'assistant', content: null, tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
    ];
    await ask({ messages: exchange });
    await ask({ messages: [{ role: 'user', content: 'Thanks' }] });

    expect(sent().map(({ messages }) => messages)).toEqual([
      [...ASKED.messages, ...exchange],
      [...ASKED.messages, { role: 'assistant', content: 'Rain.' }, { role: 'user', content: 'Thanks' }],
    ]);
  });
});
