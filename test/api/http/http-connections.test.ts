import { Agent, createServer, request } from 'node:http';
import type { IncomingHttpHeaders, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { registerAnswers } from '../../../api/http/pipelining.ts';
import { serve } from '../../../api/http/serve.ts';
import { BATCH_LIMITS } from '../../../shared/contracts/batches.ts';
import { CHAT_LIMITS } from '../../../shared/contracts/chat-request.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { chatOf, waitUntil } from '../../support/chat.ts';
import { dial } from '../../support/dial.ts';
import { useService, useTenant } from '../../support/use-service.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

describe('a client that waits to be asked for its body', () => {
  const closer = createCloser(() => undefined);
  const service = useService({ workers: 0 });
  const tenant = useTenant(service);
  const sockets: Socket[] = [];
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    await serve(service.express, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0 }, closer);
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await closer.close();
  });

  function wait(path: string, length: number, headers: Record<string, string> = {}) {
    const client = dial(port);
    sockets.push(client.socket);
    const all = {
      Host: 'parley',
      Expect: '100-continue',
      Authorization: `Bearer ${tenant.key}`,
      'Content-Type': 'application/json',
      'Content-Length': String(length),
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    client.socket.write(`POST /platform/v1${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
    return client;
  }

  it('is asked for it, once, when its key is accepted', async () => {
    const client = wait('/chat', 2);
    await client.heard(CONTINUE);
    expect(client.text()).toBe(CONTINUE);

    client.socket.write('{}');

    await client.heard('"param":"messages"');
    expect(client.text()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /);
    expect(client.text()).toContain('Connection: keep-alive');
  });

  it.each([
    ['its key is refused', '/chat', 2, { Authorization: 'Bearer svc_sk_live_nothing' }, 401],
    ['its body is no JSON', '/chat', 2, { 'Content-Type': 'text/plain' }, 400],
    ['its body is too large', '/chat', CHAT_LIMITS.bodyBytesMax + 1, {}, 400],
    ['the body of a batch is too large', '/batches', 60_000_000, { 'Content-Type': 'application/x-ndjson' }, 413],
    ['there is nothing at its path', '/nothing', 2, {}, 404],
  ])('is not asked where %s: the answer ends the connection at once', async (_why, path, length, headers, status) => {
    const startedAt = performance.now();

    const answer = await wait(path, length, headers).ended;

    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain('Connection: close');
    // Whoever has a body under way is waited for, for five seconds.
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  it.each([
    ['as it is', {}, (line: string) => Buffer.from(line)],
    ['compressed', { 'Content-Encoding': 'gzip' }, (line: string) => gzipSync(line)],
  ])('is asked once for the lines of a batch: %s', async (_how, encoding, encode) => {
    const body = encode(`${JSON.stringify({ custom_id: 'a', body: chatOf('Hi') })}\n`);
    const client = wait('/batches', body.length, { 'Content-Type': 'application/x-ndjson', ...encoding });
    await client.heard(CONTINUE);

    client.socket.write(body);

    await client.heard('"object":"batch"');
    expect(client.text().split('100 Continue')).toHaveLength(2);
  });

  it('may send it without waiting', async () => {
    const client = wait('/chat', 2);
    client.socket.write('{}');

    await client.heard('"param":"messages"');
    expect(client.text()).toContain('Connection: keep-alive');
  });

  it('an unknown expectation is ignored, and the next request answered', async () => {
    const client = wait('/chat', 2, { Expect: 'something' });
    client.socket.write('{}GET /nothing HTTP/1.1\r\nHost: parley\r\n\r\n');

    await client.heard('HTTP/1.1 404 ');
    expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('a server that stops', () => {
  const headersOf = (port: number, agent: Agent) =>
    new Promise<IncomingHttpHeaders>((resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', agent }, (response) => {
        response.resume().on('end', () => {
          resolve(response.headers);
        });
      });
      sent.on('error', reject).end();
    });

  it('says with every answer that the connection ends, so that its client sends nothing more there', async () => {
    const closer = createCloser(() => undefined);
    const waiting: (() => void)[] = [];
    const port = await freePort();
    const app: RequestListener = (_req, res) => {
      waiting.push(() => res.end('answer'));
    };
    await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 5_000 }, closer);
    const agent = new Agent({ keepAlive: true });
    const [underWay, longer] = [headersOf(port, agent), headersOf(port, agent)];
    await waitUntil(() => waiting.length === 2, 'both requests');
    const kept = headersOf(port, agent);
    await waitUntil(() => waiting.length === 3, 'the third');
    waiting.pop()?.();
    expect(await kept).toMatchObject({ connection: 'keep-alive' });

    const closing = closer.close();
    for (const end of waiting) end();

    expect(await underWay).toMatchObject({ connection: 'close' });
    expect(await longer).toMatchObject({ connection: 'close' });
    await closing;
    agent.destroy();
  });
});

it('answers that wait behind another one have ended when their client has gone', async () => {
  const server = createServer();
  const answers = registerAnswers(server);
  const ended: (string | undefined)[] = [];
  answers.onEnd(({ req }) => ended.push(req.url));
  const open = () => {
    const paths: (string | undefined)[] = [];
    answers.forEach(({ req }) => paths.push(req.url));
    return paths;
  };
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const client = dial(port);
  const paths = ['/first', '/second', '/third'];
  client.socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: parley\r\n\r\n`).join(''));
  await waitUntil(() => open().length === paths.length, 'all requests');
  expect(open()).toEqual(paths);

  client.socket.destroy();

  await waitUntil(() => ended.length === paths.length, 'an end of each');
  expect(ended.toSorted()).toEqual(paths);
  expect(open()).toEqual([]);
  server.close();
});

it('a full server gives the place of the connection that has been idle for longest to a new one', async () => {
  const closer = createCloser(() => undefined);
  const port = await freePort();
  const app: RequestListener = (req, res) => {
    if (req.url === '/wait') res.flushHeaders();
    else res.end(req.url);
  };
  await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0, maxConnections: 3 }, closer);
  const ask = async (path: string) => {
    const client = dial(port, `GET ${path} HTTP/1.1\r\nHost: parley\r\n\r\n`);
    await client.heard(path === '/wait' ? '200 OK' : path);
    return client;
  };
  const [busy, first] = [await ask('/wait'), await ask('/first')];

  const second = await ask('/second');

  await first.ended;
  second.socket.write('GET /again HTTP/1.1\r\nHost: parley\r\n\r\n');
  await second.heard('/again');
  expect(busy.socket.destroyed).toBe(false);
  await closer.close();
});

it('a server keeps an idle connection for as long as it is told', async () => {
  const closer = createCloser(() => undefined);
  const port = await freePort();
  const app: RequestListener = (_req, res) => res.end();
  await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0, keepAliveMs: 620_000 }, closer);

  const { headers } = await fetch(`http://127.0.0.1:${port}`);

  expect(headers.get('Keep-Alive')).toBe('timeout=620');
  await closer.close();
});

it('a server waits as long for a request as for the slowest body that is taken', async () => {
  const closer = createCloser(() => undefined);
  const port = await freePort();
  const timeouts: unknown[] = [];
  const app: RequestListener = (req, res) => {
    timeouts.push(Reflect.get(Reflect.get(req.socket, 'server') as Server, 'requestTimeout'));
    res.end();
  };
  await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0 }, closer);

  await fetch(`http://127.0.0.1:${port}`);

  // docs/spec.md#bodies; a batch's is stored meanwhile.
  expect(timeouts[0]).toBeGreaterThanOrEqual((BATCH_LIMITS.bytesMax / (64 * 1024)) * 1_000 + 300_000);
  // Workers take uploads away that are older.
  expect(timeouts[0]).toBeLessThan(1_250_000);
  await closer.close();
});
