import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { chatOf, choiceOf, errorOf, ledgerOf, parseSse, postChat, postStream, textOf } from '../../support/chat.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import { useService, useStarted } from '../../support/use-service.ts';

const USAGE = { input_tokens: 3, cache_read_input_tokens: 40, output_tokens: 5 };
const message = (text: string) => ({
  type: 'message',
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  usage: USAGE,
});
const sse = (...events: object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const streamOf = (...texts: string[]) =>
  sse(
    { type: 'message_start', message: { usage: { input_tokens: 3, cache_read_input_tokens: 40, output_tokens: 1 } } },
    ...texts.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  );
const OVERLOADED = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

describe('a tier that is routed to the Messages API', () => {
  const service = useService({ workers: 0 });
  const server = useStarted('server', startScriptedServer);
  beforeAll(async () => {
    const settings = { kind: 'anthropic', base_url: `${server.url}/v1`, api_key: 'k', max_retries: 1 };
    await service.setProvider(settings, 'anthropic');
    await service.setTargets('mobius', [{ provider: 'anthropic', model: 'claude-x' }]);
    await service.startWorker();
  });

  /** One answer for each call, the last one for all that follow. */
  function answer(...answers: [number, string][]): void {
    server.requests.length = 0;
    server.answer((res) => {
      const [status, body] = answers[Math.min(server.requests.length, answers.length) - 1] ?? [500, ''];
      res.writeHead(status).end(body);
    });
  }
  const sent = () => server.requests.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

  it('answers, and charges what the provider counted, its cache included', async () => {
    answer([200, JSON.stringify(message('Rivers flow.'))]);
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Rivers?', { subject: 'Geography' }));

    expect(response.body.choices[0]).toMatchObject({ message: { content: 'Rivers flow.' }, finish_reason: 'stop' });
    expect(sent()).toMatchObject([
      { model: 'claude-x', system: expect.stringContaining('"Geography"'), messages: [{ role: 'user' }] },
    ]);
    expect(await ledgerOf(service, response)).toMatchObject({
      promptTokens: 43,
      completionTokens: 5,
      estimated: false,
      provider: 'anthropic',
    });
  });

  it('names the same user of two tenants by two names, and of one tenant always by one that says nothing of it', async () => {
    answer([200, JSON.stringify(message('Hi.'))]);
    const keys = await Promise.all([service.startTenant(), service.startTenant()]);
    const body = { model: 'mobius', messages: [{ role: 'user', content: 'Hi' }], user: 'pupil@school.example' };

    for (const { key } of [keys[0], keys[0], keys[1]])
      await request(service.app)
        .post('/platform/v1/chat/completions')
        .auth(key, { type: 'bearer' })
        .send(body)
        .expect(200);

    const [first, again, other] = sent().map(({ metadata }) => (metadata as { user_id: string }).user_id);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(JSON.stringify(sent())).not.toContain('pupil@');
  });

  it('a tier that is routed to the Messages API streams, after an overload at first', async () => {
    answer([529, JSON.stringify(OVERLOADED)], [200, streamOf('Rivers ', 'flow.')]);
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Rivers?'));

    const events = parseSse(String(response.body));
    expect(textOf(events)).toBe('Rivers flow.');
    expect(choiceOf(events.at(-2)?.chunk).finish_reason).toBe('stop');
    expect(sent()).toHaveLength(2);
  });

  it('ends a stream that the provider breaks off with the typed error', async () => {
    const [begin = ''] = streamOf('Rivers ').split('data: {"type":"message_delta"');
    answer([200, begin + sse(OVERLOADED)]);
    const { key } = await service.startTenant();

    const response = await postStream(service.app, key, chatOf('Rivers?'));

    const events = parseSse(String(response.body));
    expect(textOf(events)).toBe('Rivers ');
    expect(events.at(-1)?.chunk).toMatchObject({ error: { code: 'model_unavailable' } });
    expect(sent()).toHaveLength(1);
  });

  it('asks for JSON in words, once more for an answer that is none, and charges only the one that is', async () => {
    answer([200, JSON.stringify(message('Sure! {"a":1}'))], [200, JSON.stringify(message('{"a":1}'))]);
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Rivers?', { json_mode: true }));

    expect(response.body.choices[0].message.content).toBe('{"a":1}');
    expect(sent()).toMatchObject([
      { system: expect.stringContaining('JSON') },
      { system: expect.stringContaining('JSON') },
    ]);
    expect(await ledgerOf(service, response)).toMatchObject({ promptTokens: 43, completionTokens: 5 });
  });

  it('tells the caller about a request that the provider finds wrong, and asks once', async () => {
    const error = { type: 'invalid_request_error', message: 'max_tokens: 9 > 8' };
    answer([400, JSON.stringify({ type: 'error', error })]);
    const { key } = await service.startTenant();

    const response = await postChat(service.app, key, chatOf('Rivers?'));

    expect(response.status).toBe(400);
    expect(errorOf(response)).toMatchObject({ code: 'invalid_request' });
    expect(sent()).toHaveLength(1);
  });
});
