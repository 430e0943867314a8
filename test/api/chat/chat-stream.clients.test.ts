import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import OpenAI from 'openai';

import { chatOf, ledgerOf, waitUntil } from '../../support/chat.ts';
import { openStream } from '../../support/stream-client.ts';
import type { OpenStream } from '../../support/stream-client.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ relayTimes: { pingMs: 50 } });
afterEach(() => {
  service.provider.restore();
});

/** `npm run test:clients` has more of them, on the processes and with pings every 15 seconds. */
describe('a stream of many pings', () => {
  const question = 'Which way do rivers take to the sea, and what do they meet on it?';
  const ask = { model: 'mobius', messages: [{ role: 'user' as const, content: question }] };

  it('is whole for the official openai client', async () => {
    service.provider.change({ echo: true, first_token_ms: 200, chunks: 4, chunk_ms: 200 });
    const { key } = await service.startTenant();
    const client = new OpenAI({ apiKey: key, baseURL: `${service.url}/platform/v1` });

    let text = '';
    for await (const { choices } of await client.chat.completions.create({ ...ask, stream: true }))
      text += choices[0]?.delta.content ?? '';

    expect(text).toBe(question);
  });

  it('is whole for eventsource-parser, which sees the pings as comments', async () => {
    service.provider.change({ echo: true, first_token_ms: 200, chunks: 4, chunk_ms: 200 });
    const { key } = await service.startTenant();
    const response = await fetch(`${service.url}/platform/v1/chat/stream`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(ask),
    });

    const comments: string[] = [];
    const parser = new EventSourceParserStream({ onComment: (comment) => comments.push(comment.trim()) });
    const data: string[] = [];
    for await (const event of response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(parser) ?? [])
      data.push(event.data);

    expect(data.pop()).toBe('[DONE]');
    const chunks = data.map((line) => JSON.parse(line) as OpenAI.ChatCompletionChunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(question);
    expect(comments.filter((comment) => comment === 'ping').length).toBeGreaterThan(2);
  });
});

describe('a client that leaves its stream', () => {
  const rejections: unknown[] = [];
  const remember = (reason: unknown) => rejections.push(reason);
  beforeAll(() => {
    process.on('unhandledRejection', remember);
  });
  afterAll(() => {
    process.off('unhandledRejection', remember);
    expect(rejections).toEqual([]);
    expect(service.log.errors()).toEqual([]);
  });

  /** The provider has been heard to its end, and what it counted is booked. */
  async function expectSettled(stream: OpenStream): Promise<void> {
    const entry = await ledgerOf(service, stream);
    const counted = service.provider.request(stream.requestId);
    expect(counted).toMatchObject({ calls: 1, completed: 1, aborted: 0 });
    expect(entry).toMatchObject({
      finishReason: 'stop',
      estimated: false,
      promptTokens: counted?.prompt_tokens,
      completionTokens: counted?.completion_tokens,
    });
  }

  it('while it is waiting for the first text is charged in the same way', async () => {
    service.provider.change({ first_token_ms: 300 });
    const { key } = await service.startTenant();
    const stream = await openStream(service.url, key, chatOf('No patience'));
    await stream.until(': ping');

    stream.leave();

    await expectSettled(stream);
  });

  it('as one of many, at any moment, disturbs none of the others', async () => {
    service.provider.change({ chunks: 12, chunk_ms: 20 });
    const { key } = await service.startTenant();
    const streams = await Promise.all(
      Array.from({ length: 24 }, (_, index) => openStream(service.url, key, chatOf(`Visitor ${index}`))),
    );

    await Promise.all(
      streams.map(async (stream, index) => {
        await stream.until(`id: ${1 + (index % 8)}\n`);
        if (index % 2 === 0) stream.leave();
        else expect(await stream.end()).toContain('data: [DONE]');
      }),
    );

    await Promise.all(streams.map(expectSettled));
  });

  it('a client that leaves its stream leaves nothing open in the ingress', async () => {
    const openRelays = async () => Number(/^parley_open_relays\{.*\} (\d+)$/m.exec(await service.metrics())?.[1]);
    service.provider.change({ chunks: 10, chunk_ms: 30 });
    const { key } = await service.startTenant();
    const stream = await openStream(service.url, key, chatOf('Last visit'));
    await stream.until('"role":"assistant"');
    expect(await openRelays()).toBeGreaterThan(0);

    stream.leave();

    await waitUntil(async () => (await openRelays()) === 0, 'all relays to be closed');
    await expectSettled(stream);
  });
});
