import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { send } from '../../../scripts/bench/stateful/send.ts';
import type { SendOptions } from '../../../scripts/bench/stateful/send.ts';
import { startScriptedServer } from '../../support/scripted-server.ts';
import type { ScriptedServer } from '../../support/scripted-server.ts';

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());

const SSE = { 'Content-Type': 'text/event-stream', 'X-Request-Id': 'req_1' };
const eventOf = (id: number, content: string) =>
  `id: ${id}\ndata: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const WHOLE = `: ping\n${eventOf(1, '')}${eventOf(2, 'Über ')}${eventOf(3, 'den Fluss')}id: 4\ndata: [DONE]\n\n`;

function ask(options: Partial<SendOptions> = {}) {
  const what = { path: '/chat', headers: { 'Content-Type': 'application/json' }, body: '{}' };
  return send(server.url, what, { requestIdHeader: 'x-request-id', ...options });
}

describe('send', () => {
  it('reads a stream to its end, and knows when the first text came', async () => {
    server.answer((res) => res.writeHead(200, SSE).end(WHOLE));

    const reply = await ask();

    expect(reply).toMatchObject({ status: 200, requestId: 'req_1', text: 'Über den Fluss', isWhole: true });
    expect(reply.lastEventId).toBe('4');
    expect(reply.firstTextAt).toBeGreaterThanOrEqual(reply.headAt);
  });

  it('leaves after so many bytes, and counts only events that are whole', async () => {
    server.answer((res) => void res.writeHead(200, SSE).write(WHOLE));

    const inTheThird = WHOLE.indexOf('den');
    const reply = await ask({ leaveAfterBytes: inTheThird });

    expect(reply).toMatchObject({ text: 'Über ', lastEventId: '2', isWhole: false });
  });

  it('keeps what came before a connection broke', async () => {
    server.answer((res) => {
      res.writeHead(200, SSE).write(eventOf(1, 'So far'), () => res.destroy());
    });

    expect(await ask()).toMatchObject({ status: 200, text: 'So far', isWhole: false });
  });

  it('reads refusals with their Retry-After', async () => {
    const head = { 'Content-Type': 'application/json', 'Retry-After': '7' };
    server.answer((res) => res.writeHead(429, head).end('{"error": {"code": "rpm_exceeded"}}'));

    expect(await ask()).toMatchObject({ status: 429, retryAfterSeconds: 7, text: '', isWhole: false });
  });

  it('reads a complete answer and its tokens', async () => {
    const body = { choices: [{ message: { content: 'Hi' } }], usage: { prompt_tokens: 3, completion_tokens: 1 } };
    server.answer((res) => res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body)));

    expect(await ask()).toMatchObject({ text: 'Hi', tokens: 4, isWhole: true });
  });

  it('gives up after its time, and where nobody listens', async () => {
    server.answer(() => undefined);

    expect(await ask({ timeoutMs: 50 })).toMatchObject({ status: 0, isWhole: false });
    const nobody = { requestIdHeader: 'x-request-id' };
    expect(await send('http://127.0.0.1:1', { path: '/', headers: {} }, nobody)).toMatchObject({ status: 0 });
  });

  it('opens a connection for each request', async () => {
    server.answer((res) => res.writeHead(200, SSE).end(WHOLE));
    const before = server.connections();

    await ask();
    await ask();

    expect(server.connections()).toBe(before + 2);
  });
});
