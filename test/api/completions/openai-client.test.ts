import { afterEach, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import request from 'supertest';

import { errorOf, readText, waitFor } from '../../support/chat.ts';
import { useService } from '../../support/use-service.ts';

describe('the official openai client', () => {
  const service = useService();
  afterEach(() => {
    service.provider.restore();
  });

  const clientFor = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${service.url}/platform/v1`, maxRetries: 0 });
  const hello = { model: 'mobius', messages: [{ role: 'user' as const, content: 'Hello' }] };
  const post = (key: string, body: object) =>
    request(service.app).post('/platform/v1/chat/completions').auth(key, { type: 'bearer' }).send(body);

  it('gets a complete answer, with its settings passed on', async () => {
    const { key } = await service.startTenant();

    const answer = await clientFor(key).chat.completions.create({
      ...hello,
      temperature: 0.5,
      max_completion_tokens: 3,
      stop: ['x'],
    });

    expect(answer.object).toBe('chat.completion');
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer.usage?.completion_tokens).toBeLessThanOrEqual(3);
  });

  it('the official openai client gets a stream with usage at its end', async () => {
    service.provider.change({ chunks: 8 });
    const { key } = await service.startTenant();

    const stream = await clientFor(key).chat.completions.create({
      ...hello,
      stream: true,
      stream_options: { include_usage: true },
    });

    let text = '';
    let tokens = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      tokens = chunk.usage?.total_tokens ?? tokens;
    }
    expect(text.length).toBeGreaterThan(10);
    expect(tokens).toBeGreaterThan(0);
  });

  it('the official openai client raises when a stream fails midway', async () => {
    service.provider.change({ chunks: 20, chunk_ms: 5, fail: 'truncate', fail_after: 5 });
    const { key } = await service.startTenant();
    const stream = await clientFor(key).chat.completions.create({ ...hello, stream: true });

    const reading = (async () => {
      for await (const chunk of stream) expect(chunk.object).toBe('chat.completion.chunk');
    })();

    await expect(reading).rejects.toMatchObject({ code: 'model_unavailable' });
  });

  it('gets events without ids, which it may count to go on behind them', async () => {
    service.provider.change({ chunks: 8 });
    const { key } = await service.startTenant();
    const ask = () =>
      post(key, { ...hello, stream: true })
        .set('Idempotency-Key', 'counted')
        .buffer(true)
        .parse(readText);

    const first = String((await ask()).body);
    const again = await ask().set('Last-Event-ID', '3');

    expect(first).toMatch(/^(data: .*\n\n)+$/);
    const events = first.split(/(?<=\n\n)/);
    expect(again.body).toBe(events.slice(3).join(''));
    const { id } = JSON.parse(String(events[0]).slice('data: '.length)) as { id: string };
    const rest = await request(service.app)
      .get(`/platform/v1/chat/stream/${id}?starting_after=3`)
      .auth(key, { type: 'bearer' })
      .buffer(true)
      .parse(readText);
    expect(rest.body).toBe(
      events
        .map((event, index) => `id: ${index + 1}\n${event}`)
        .slice(3)
        .join(''),
    );
  });

  it('may leave a stream, which is then still charged once', async () => {
    service.provider.change({ chunks: 60, chunk_ms: 10 });
    const { key, tenantId } = await service.startTenant({ tenant: { on_disconnect: 'finish' } });
    const stream = await clientFor(key).chat.completions.create({ ...hello, stream: true });

    for await (const chunk of stream) if (chunk.choices[0]?.delta.content !== undefined) break;
    stream.controller.abort();

    const entries = await waitFor(async () => {
      const rows = await service.models.ledger.find({ tenantId, type: 'usage' }).lean();
      return rows.length > 0 ? rows : undefined;
    }, 'the ledger entry');
    expect(entries).toHaveLength(1);
  });

  it('the official openai client lists the tiers as models', async () => {
    const { key } = await service.startTenant();
    const models = await clientFor(key).models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['mobius', 'oloid', 'embedding']);
    expect(await clientFor(key).models.retrieve('oloid')).toEqual(models.data[1]);
    await expect(clientFor(key).models.retrieve('gpt-4o')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  it('the official openai client sees the service’s own errors', async () => {
    await expect(clientFor('svc_sk_live_nonsense').chat.completions.create(hello)).rejects.toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
  });

  it('is refused what no model can do', async () => {
    const { key } = await service.startTenant();
    for (const [body, param] of [
      [{ ...hello, tools: {} }, 'tools'],
      [{ ...hello, tool_choice: 'required' }, 'tool_choice'],
      [{ ...hello, functions: [{ name: 'add' }] }, 'functions'],
      [{ ...hello, function_call: { name: 'add' } }, 'function_call'],
      [{ ...hello, audio: {} }, 'audio'],
      [{ ...hello, temperature: 3 }, 'temperature'],
      [{ ...hello, modalities: ['text', 'audio'] }, 'modalities[1]'],
    ] as const) {
      const response = await post(key, body);
      expect(response.status).toBe(400);
      expect(errorOf(response)).toMatchObject({ code: 'invalid_request', param });
    }
    const parts = {
      role: 'user',
      content: [
        { type: 'text', text: 'Hel' },
        { type: 'text', text: 'lo' },
      ],
    };
    expect((await post(key, { messages: [parts], modalities: ['text'] })).status).toBe(200);
  });

  it('may send back an answer without text, as it is or as null', async () => {
    service.provider.change({ fail: 'empty' });
    const { key } = await service.startTenant();
    const { choices } = await clientFor(key).chat.completions.create(hello);
    const answer = choices[0]?.message;
    expect(answer?.content).toBe('');
    service.provider.restore();
    const next = { role: 'user' as const, content: 'Go on' };

    for (const silent of [
      answer,
      { role: 'assistant', content: [], name: 'x' },
      { role: 'assistant', content: null, tool_calls: [] },
    ]) {
      const response = await post(key, { messages: [...hello.messages, silent, next] });

      expect(response.body).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
      expect(service.provider.request(String(response.body.id))?.messages).toEqual([...hello.messages, next]);
    }
  });

  it('may have an empty turn of the user, as agents send them, also with memory', async () => {
    const { key } = await service.startTenant();
    const messages = [...hello.messages, { role: 'assistant', content: 'Hi' }, { role: 'user', content: '' }];

    const response = await post(key, { messages });
    const kept = await post(key, { messages, entity_id: 'agent', seed: 2 ** 60 });

    expect(service.provider.request(String(response.body.id))?.messages).toEqual(messages);
    expect([response.status, kept.status]).toEqual([200, 200]);
    expect((await post(key, { messages: [...messages, messages[0]], entity_id: 'agent' })).status).toBe(200);
  });

  it.each([
    ['no tools', { tools: [] }],
    ['no tools, of which the model may choose', { tools: [], tool_choice: 'auto' }],
    ['no tools, which it must not use', { tool_choice: 'none' }],
    ['no functions', { functions: [], function_call: 'auto' }],
  ])('may offer %s, as frameworks do that have none', async (_what, fields) => {
    const { key } = await service.startTenant();

    const response = await post(key, { ...hello, ...fields });

    expect(response.body).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
    expect(response.headers).not.toHaveProperty('x-ignored-fields');
  });

  it('needs the scope of the route it stands for', async () => {
    const { key } = await service.startTenant({ key: { scopes: ['chat'] } });
    expect((await post(key, hello)).status).toBe(200);
    const streamed = await post(key, { ...hello, stream: true });
    expect(streamed.status).toBe(403);
    expect(errorOf(streamed)['code']).toBe('endpoint_not_allowed');
  });
});
