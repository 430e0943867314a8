import { afterEach, describe, expect, it } from '@jest/globals';

import { chatOf, choiceOf, parseSse, postChat, postStream, textOf } from '../../support/chat.ts';
import type { TestService } from '../../support/service.ts';
import { openStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

describe('POST /chat/stream', () => {
  const service = useService({ silenceMs: 1_000 });
  afterEach(() => {
    service.provider.restore();
  });

  it('answers with an uncompressed, uncached, unbuffered event stream', async () => {
    const { key } = await service.startTenant();

    const stream = await openStream(service.url, key, chatOf('Hello'));
    await stream.end();

    expect(stream.status).toBe(200);
    expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(stream.headers['cache-control']).toBe('no-cache, no-transform');
    expect(stream.headers['x-accel-buffering']).toBe('no');
    expect(stream.headers['content-encoding']).toBeUndefined();
    expect(stream.headers['x-request-id']).toMatch(/^req_[0-9A-Za-z]{24}$/);
    expect(stream.headers['x-ratelimit-limit-requests']).toBe('100000');
  });

  it('numbers its events from 1 in steps of 1, [DONE] included, and has no other lines', async () => {
    const { key } = await service.startTenant();

    const { text } = await openAndRead(service, key, chatOf('Count'));

    const ids = parseSse(text).map(({ id }) => id);
    expect(ids).toEqual(ids.map((_, index) => index + 1));
    expect(text.endsWith(`id: ${ids.length}\ndata: [DONE]\n\n`)).toBe(true);
    expect(text.replaceAll(/id: \d+\ndata: .*\n\n/g, '')).toBe('');
  });

  it('sends chunks of the documented shape: role first, text, then an empty delta with reason and usage', async () => {
    const { key } = await service.startTenant();

    const { text, requestId } = await openAndRead(service, key, chatOf('Shape', { model: 'oloid' }));

    const chunks = parseSse(text)
      .slice(0, -1)
      .map(({ chunk }) => chunk);
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({ id: requestId, object: 'chat.completion.chunk', model: 'oloid' });
      expect(Number.isInteger(chunk?.['created'])).toBe(true);
    }
    const [first, ...others] = chunks;
    const final = others.pop();
    expect(choiceOf(first).delta).toEqual({ role: 'assistant', content: expect.any(String) });
    for (const chunk of [first, ...others]) {
      expect(chunk).toMatchObject({ choices: [{ index: 0, finish_reason: null }] });
      expect(chunk).not.toHaveProperty('usage');
    }
    for (const chunk of others) expect(Object.keys(choiceOf(chunk).delta)).toEqual(['content']);
    expect(final).toMatchObject({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    expect(choiceOf(final).delta).toEqual({});
    const counted = service.provider.request(requestId);
    expect(final?.['usage']).toEqual({
      prompt_tokens: counted?.prompt_tokens,
      completion_tokens: counted?.completion_tokens,
      total_tokens: (counted?.prompt_tokens ?? 0) + (counted?.completion_tokens ?? 0),
    });
  });

  it('brings chunks as they are made, not when the answer is whole', async () => {
    service.provider.change({ chunks: 10, text: 'one two three four five six', fail: 'stall', fail_after: 3 });
    const { key } = await service.startTenant();

    const stream = await openStream(service.url, key, chatOf('Slowly'));
    await stream.until('two');

    expect(service.provider.stats().in_flight).toBe(1);
    expect(stream.text()).not.toContain('finish_reason":"');
    await stream.end();
  });

  it('joins to the same text as the complete answer to the same prompt', async () => {
    service.provider.change({ text: 'Quotes " \\ / \u2028 é 😀 \u0000 data: x\n\nid: 7\n\r\n<|endoftext|> ' });
    const { key } = await service.startTenant();
    const body = chatOf('Say it twice');

    const complete = await postChat(service.app, key, body);
    const streamed = await postStream(service.app, key, body);

    expect(complete.body.choices[0].message.content).toBe(service.provider.settings().text);
    expect(textOf(parseSse(String(streamed.body)))).toBe(service.provider.settings().text);
  });

  it('echoes metadata in the final chunk and nowhere else', async () => {
    const { key } = await service.startTenant();
    const metadata = { order: 'A"1', nested: { list: [1, null, '😀'] } };

    const { body } = await postStream(service.app, key, chatOf('Hi', { metadata }));

    const echoes = parseSse(String(body)).filter(({ chunk }) => chunk?.['metadata'] !== undefined);
    expect(echoes).toHaveLength(1);
    expect(echoes[0]?.chunk).toMatchObject({ metadata, choices: [{ finish_reason: 'stop' }] });
  });

  it.each([
    ['length', { max_tokens: 5 }, {}],
    ['content_filter', {}, { finish_reason: 'content_filter' }],
    ['stop', {}, { finish_reason: 'eos_token' }],
  ])('POST /chat/stream ends with finish_reason %s', async (reason, more, settings) => {
    service.provider.change(settings);
    const { key } = await service.startTenant();

    const streamed = await postStream(service.app, key, chatOf('Why?', more));
    const complete = await postChat(service.app, key, chatOf('Why?', more));

    expect(choiceOf(parseSse(String(streamed.body)).at(-2)?.chunk).finish_reason).toBe(reason);
    expect(complete.body.choices[0].finish_reason).toBe(reason);
  });

  it('has a final chunk and [DONE] when the answer is empty', async () => {
    service.provider.change({ fail: 'empty' });
    const { key } = await service.startTenant();

    const { body } = await postStream(service.app, key, chatOf('Nothing'));

    const [final, done] = parseSse(String(body));
    expect(final).toMatchObject({ id: 1, chunk: { choices: [{ delta: {}, finish_reason: 'stop' }] } });
    expect(done).toEqual({ id: 2, chunk: undefined });
  });
});

async function openAndRead(service: TestService, key: string, body: object) {
  const stream = await openStream(service.url, key, body);
  return { text: await stream.end(), requestId: stream.requestId };
}
