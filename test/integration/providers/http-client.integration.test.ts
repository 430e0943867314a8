import type { ServerResponse } from 'node:http';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createAdapters } from '../../../workers/open-pipeline.ts';
import { ProviderError } from '../../../workers/providers/provider.ts';
import type { ProviderCall, ProviderEvent } from '../../../workers/providers/provider.ts';
import { waitUntil } from '../../support/chat.ts';
import { callOf, providerOf, readEvents } from '../../support/provider-call.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';
import { listenersOf } from '../../support/signals.ts';

const MEGABYTE = 1024 * 1024;
const textEvent = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n';
const DONE = 'data: [DONE]\n\n';
const COMPLETE = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2 },
});
const END: ProviderEvent = { kind: 'end', finishReason: 'stop', usage: { promptTokens: 1, completionTokens: 2 } };

describe('a call of a provider over HTTP', () => {
  const { server, http } = useScriptedServer();
  const rejections: unknown[] = [];
  const remember = (reason: unknown) => rejections.push(reason);
  beforeAll(() => {
    process.on('unhandledRejection', remember);
  });
  afterAll(() => {
    process.off('unhandledRejection', remember);
    expect(rejections).toEqual([]);
  });

  const streams = (...parts: string[]) => {
    server.answer((res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const part of parts) res.write(part);
      res.end();
    });
  };

  const read = (more?: Partial<ProviderCall>, baseUrl = `${server.url}/v1`) =>
    readEvents((sink) => createAdapters(http).openai.generate(providerOf('openai', baseUrl), callOf(more), sink));

  async function readAll(more?: Partial<ProviderCall>, baseUrl?: string): Promise<ProviderEvent[]> {
    const { events, failure } = await read(more, baseUrl);
    if (failure !== undefined) throw failure as Error;
    return events;
  }

  const failureOf = async (more?: Partial<ProviderCall>, baseUrl?: string) => (await read(more, baseUrl)).failure;

  it('names key and request, and asks at the base URL, with or without a slash at its end', async () => {
    streams(textEvent('Hi'), FINISH, USAGE, DONE);

    await readAll({}, `${server.url}/v1/`);

    expect(server.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer sk-secret',
      'x-request-id': 'req_1',
      'content-type': 'application/json',
    });
  });

  describe('uses its connections again', () => {
    it.each([
      ['streamed', true],
      ['complete', false],
    ])('uses its connections again after %s calls', async (_kind, stream) => {
      if (stream) streams(textEvent('Hi'), FINISH, USAGE, DONE);
      else server.answer((res) => res.end(COMPLETE));

      for (let call = 0; call < 20; call += 1) {
        expect(await readAll({ stream })).toEqual([{ kind: 'text', text: 'Hi' }, END]);
      }

      // One that has just become free may be overlooked once.
      expect(server.connections()).toBeLessThanOrEqual(2);
      expect(server.abandoned()).toBe(0);
    });

    it('uses its connections again after refused calls', async () => {
      server.answer((res) => res.writeHead(429, { 'retry-after': '7' }).end('{"error":{"message":"canary"}}'));

      for (let call = 0; call < 20; call += 1) {
        expect(await failureOf()).toMatchObject({ fault: 'transient', status: 429, retryAfterMs: 7_000 });
      }

      // One that has just become free may be overlooked once.
      expect(server.connections()).toBeLessThanOrEqual(2);
    });

    it('and opens another where the provider has closed it meanwhile', async () => {
      server.answer((res) => res.end(COMPLETE));
      await readAll({ stream: false });
      await server.closeIdle();

      expect(await readAll({ stream: false })).toHaveLength(2);
    });

    it('after 100 Continue before every answer', async () => {
      server.answer((res) => {
        res.writeContinue();
        res.end(COMPLETE);
      });

      for (let call = 0; call < 20; call += 1) expect(await readAll({ stream: false })).toHaveLength(2);

      expect(server.connections()).toBeLessThanOrEqual(2);
    });

    it('and opens another where the provider resets what it has served, without a failure', async () => {
      const served = new Set<unknown>();
      server.answer((res) => {
        if (served.has(res.socket)) res.socket?.resetAndDestroy();
        else res.end(COMPLETE);
        served.add(res.socket);
      });

      for (let call = 0; call < 6; call += 1) expect(await readAll({ stream: false })).toHaveLength(2);

      expect(server.requests.length).toBeGreaterThan(6);
    });

    it('and fails where the one that it opens is reset, too', async () => {
      server.answer((res) => res.end(COMPLETE));
      await readAll({ stream: false });
      server.requests.length = 0;
      server.answer((res) => res.socket?.resetAndDestroy());

      expect(await failureOf({ stream: false })).toMatchObject({ fault: 'transient' });
      expect(server.requests.length).toBeLessThanOrEqual(2);
    });

    it('and fails where a part of the answer has come before the reset', async () => {
      server.answer((res) => res.end(COMPLETE));
      await readAll({ stream: false });
      server.requests.length = 0;
      server.answer((res) => {
        res.socket?.write('HTTP/1.1 200', () => setImmediate(() => res.socket?.resetAndDestroy()));
      });

      expect(await failureOf({ stream: false })).toMatchObject({ fault: 'transient' });
      expect(server.requests).toHaveLength(1);
    });
  });

  describe('closes its connection when it is aborted', () => {
    it.each([
      ['while the provider is silent', () => undefined],
      ['between two pieces', (res: ServerResponse) => res.writeHead(200).write(textEvent('Hi'))],
      ['inside an event', (res: ServerResponse) => res.writeHead(200).write('data: {"choi')],
    ])('a call of a provider over HTTP closes its connection when it is aborted: %s', async (_when, script) => {
      let asked = false;
      server.answer((res) => {
        script(res);
        asked = true;
      });
      const controller = new AbortController();
      const reason = new Error('stopped');
      const failure = failureOf({ signal: controller.signal });
      await waitUntil(() => asked, 'the call');

      controller.abort(reason);

      expect(await failure).toBe(reason);
      await waitUntil(() => server.abandoned() === 1, 'the connection to close');
      expect(listenersOf(controller.signal)).toBe(0);
    });

    it('before it began, and then nothing is sent', async () => {
      const reason = new Error('stopped');

      expect(await failureOf({ signal: AbortSignal.abort(reason) })).toBe(reason);
      expect(server.requests).toEqual([]);
    });
  });

  it('leaves no listener on its signal, however many calls share it', async () => {
    const { signal } = new AbortController();
    streams(textEvent('Hi'), FINISH, DONE);

    for (let call = 0; call < 20; call += 1) await readAll({ signal });
    server.answer((res) => res.writeHead(500).end());
    for (let call = 0; call < 20; call += 1) await failureOf({ signal });

    await waitUntil(() => listenersOf(signal) === 0, 'the listeners to go');
  });

  describe('takes for a fault of the provider, which another try may cure,', () => {
    const script = (status: number, body: string) => () => {
      server.answer((res) => res.writeHead(status).end(body));
    };
    it.each([
      ['an HTML page', true, script(200, '<html>canary</html>')],
      ['an answer that is not JSON', false, script(200, 'canary')],
      ['half an answer', false, script(200, COMPLETE.slice(0, -9))],
      ['an answer without a finish reason', false, script(200, COMPLETE.replace('"stop"', 'null'))],
      ['an answer of 9 MB', false, script(200, COMPLETE.replace('Hi', 'x'.repeat(9 * MEGABYTE)))],
      ['a stream of 33 MB', true, script(200, `: ${'x'.repeat(33 * MEGABYTE)}\n\n`)],
      ['an error of 1 MB', true, script(503, 'x'.repeat(MEGABYTE))],
    ])('%s', async (_what, stream, prepare) => {
      prepare();

      const failure = await failureOf({ stream });

      expect(failure).toBeInstanceOf(ProviderError);
      expect(failure).toMatchObject({ fault: 'transient' });
      expect(describeWhole(failure)).not.toContain('canary');
    });

    it('a connection that is reset, or refused', async () => {
      server.answer((res) => res.socket?.resetAndDestroy());
      const reset = await failureOf();
      const refused = await failureOf({}, 'http://127.0.0.1:1/v1');

      expect(reset).toMatchObject({ fault: 'transient', status: undefined });
      expect(refused).toMatchObject({ fault: 'transient', message: expect.stringContaining('ECONNREFUSED') });
      for (const failure of [reset, refused]) expect(describeWhole(failure)).not.toMatch(/sk-secret|Hello/);
    });
  });

  it('a call of a provider over HTTP follows no redirect', async () => {
    server.answer((res) => res.writeHead(307, { location: `${server.url}/elsewhere` }).end());

    expect(await failureOf()).toMatchObject({ fault: 'refused', status: 307 });
    expect(server.requests).toHaveLength(1);
  });
});

/** What a log may show of an error: message and stack of it and its causes. */
function describeWhole(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return `${error.message} ${error.stack ?? ''} ${describeWhole(error.cause)}`;
}
