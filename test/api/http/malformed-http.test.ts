import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { closeUnread, refuseMalformed } from '../../../api/http/connection-guards.ts';
import { registerAnswers } from '../../../api/http/pipelining.ts';
import { serve } from '../../../api/http/serve.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { expectUniformHeaders } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';

/** Everything that comes until the server ends the connection. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => (answer += part));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve(answer);
    });
    socket.write(text);
  });
}

function parse(answer: string) {
  const [head = '', body = '', ...more] = answer.split('\r\n\r\n');
  expect(more).toEqual([]);
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  const { error } = JSON.parse(body) as { error: Record<string, string> };
  return { status: Number(statusLine.split(' ')[1]), headers, error };
}

function expectRefusal(answer: string, status: number, code = 'invalid_request', type = 'invalid_request_error'): void {
  const refusal = parse(answer);
  expect(refusal.status).toBe(status);
  expectUniformHeaders(refusal);
  expect(refusal.headers).toMatchObject({ connection: 'close', 'content-type': 'application/json; charset=utf-8' });
  expect(refusal.error).toMatchObject({ ...{ code, type }, request_id: refusal.headers['x-request-id'] });
  expect(refusal.error['message']).toMatch(/^\S.*[.]$/);
}

const GET = 'GET /platform/v1/models HTTP/1.1\r\nHost: parley\r\n';
const POST = 'POST /platform/v1/chat HTTP/1.1\r\nHost: parley\r\n';
const FINE = 'GET /nothing HTTP/1.1\r\nHost: parley\r\n\r\n';

describe('what is no HTTP request is refused in the form of every refusal, and the connection closed:', () => {
  const closer = createCloser(() => undefined);
  let port: number;
  const service = useService({ workers: 0 });
  beforeAll(async () => {
    port = await freePort();
    await serve(service.express, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0 }, closer);
  });
  afterAll(async () => {
    await closer.close();
  });

  it.each([
    ['no request line', 400, 'hello\r\n\r\n'],
    ['an unknown method', 400, 'FETCH / HTTP/1.1\r\nHost: parley\r\n\r\n'],
    ['a header without a name', 400, 'GET / HTTP/1.1\r\nHost: parley\r\n: nothing\r\n\r\n'],
    [
      'two ways of telling the length',
      400,
      'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    ['headers without end', 431, `GET / HTTP/1.1\r\nHost: parley\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['no Host', 400, 'GET /platform/v1/models HTTP/1.1\r\n\r\n'],
    ['two Hosts', 400, 'GET /platform/v1/models HTTP/1.1\r\nHost: parley\r\nhost: elsewhere\r\n\r\n'],
    ['a Host that is none', 400, 'GET /platform/v1/models HTTP/1.1\r\nHost: parley/elsewhere\r\n\r\n'],
    ['two keys', 400, `${GET}Authorization: Bearer one\r\nAuthorization: Bearer two\r\n\r\n`],
    ['a transfer coding that is not undone', 400, `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    [
      'chunks in HTTP/1.0',
      400,
      'POST /platform/v1/chat HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ])('%s', async (_what, status, text) => {
    expectRefusal(await exchange(port, text), status);
  });

  it('a body that breaks off into nonsense, with one answer', async () => {
    const head = 'POST /platform/v1/chat HTTP/1.1\r\nHost: parley\r\nTransfer-Encoding: chunked\r\n';
    const answer = await exchange(port, `${head}Content-Type: application/json\r\n\r\nnonsense\r\n`);

    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect([400, 401]).toContain(parse(answer).status);
  });

  it('nonsense after a good request, which has its own answer', async () => {
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('error', () => undefined);
      socket.on('data', (part: string) => {
        if (text === '') socket.write('nonsense\r\n\r\n');
        text += part;
      });
      socket.on('close', () => {
        resolve(text);
      });
      socket.write(FINE);
    });

    const second = answer.lastIndexOf('HTTP/1.1 ');
    expect(answer.startsWith('HTTP/1.1 404 ')).toBe(true);
    expectRefusal(answer.slice(second), 400);
  });

  it('nonsense right behind good requests, which have their own answers first', async () => {
    const good = 'POST /platform/v1/chat HTTP/1.1\r\nHost: parley\r\nContent-Length: 2\r\n\r\n{}';

    const answer = await exchange(port, `${good}${FINE}nonsense\r\n\r\n`);

    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 404', 'HTTP/1.1 400']);
    expectRefusal(answer.slice(answer.lastIndexOf('HTTP/1.1 ')), 400);
  });

  it.each(['', FINE])('a CONNECT, as this is no proxy, behind the answers before it: "%s"', async (before) => {
    const answer = await exchange(port, `${before}CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\nnoise`);

    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([...(before === '' ? [] : ['HTTP/1.1 404']), 'HTTP/1.1 405']);
    const refusal = answer.slice(answer.lastIndexOf('HTTP/1.1 '));
    expectRefusal(refusal, 405, 'method_not_allowed', 'not_found_error');
    expect(parse(refusal).headers['allow']).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
  });

  it('an expectation that is not known is no reason to refuse', async () => {
    const answer = await exchange(
      port,
      'GET /nothing HTTP/1.1\r\nHost: parley\r\nExpect: more\r\nConnection: close\r\n\r\n',
    );

    expect(parse(answer)).toMatchObject({ status: 404, error: { code: 'not_found' } });
  });
});

it('a request that does not arrive in time is told so', async () => {
  const server = createServer({ headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 20 });
  refuseMalformed(server, registerAnswers(server));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));

  const answer = await exchange((server.address() as AddressInfo).port, 'GET / HTTP/1.1\r\nHost: par');

  expectRefusal(answer, 408);
  await new Promise((resolve) => server.close(resolve));
});

it('a head that comes slowly is cut soon after its time, not when Node.js looks by itself, every 30 s', async () => {
  const closer = createCloser(() => undefined);
  const port = await freePort();
  const start = performance.now();
  const app = () => undefined;
  await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0, headersMs: 100 }, closer);

  const answer = await exchange(port, 'GET / HTTP/1.1\r\nHost: par');

  expectRefusal(answer, 408);
  expect(performance.now() - start).toBeLessThan(25_000);
  await closer.close();
}, 60_000);

it('a CONNECT behind an answer that does not end is cut, and holds up no shutdown', async () => {
  const closer = createCloser(() => undefined);
  const port = await freePort();
  const app = (_req: IncomingMessage, res: ServerResponse) => void res.write('begun');
  await serve(app, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 0 }, closer);

  const answer = await exchange(
    port,
    'GET / HTTP/1.1\r\nHost: parley\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n',
  );

  expect(answer).toContain('begun');
  expect(answer).not.toContain(' 405 ');
  await closer.close();
});

describe('a request that is answered before its body has come', () => {
  const HEAD = 'POST / HTTP/1.1\r\nHost: parley\r\nContent-Length: 100000\r\n\r\n';
  const server = createServer((_req, res) => res.end('early'));
  closeUnread(registerAnswers(server), 200);
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
  });
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
  });

  it('has its connection closed, behind the answer, where the body does not come', async () => {
    const answer = await exchange((server.address() as AddressInfo).port, `${HEAD}abc`);

    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*early/);
  });

  it('leaves its connection to the next one where the body comes', async () => {
    const next = 'GET / HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n\r\n';
    const answer = await exchange((server.address() as AddressInfo).port, HEAD + 'x'.repeat(100_000) + next);

    expect(answer.match(/early/g)).toHaveLength(2);
  });
});
