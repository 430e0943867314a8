import { createServer } from 'node:http';
import type { RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, describe, expect, it } from '@jest/globals';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { serializePipelined, WAITING_MAX, registerAnswers } from '../../../api/http/pipelining.ts';
import { refuseMalformed } from '../../../api/http/connection-guards.ts';
import { serve } from '../../../api/http/serve.ts';
import { createCloser } from '../../../shared/lifecycle/closer.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { dial } from '../../support/dial.ts';

let closer = createCloser(() => undefined);
afterEach(async () => {
  await closer.close();
  closer = createCloser(() => undefined);
});

/** Serves what answers when the test says so. */
async function start(listener?: RequestListener) {
  const begun: { path: string; res: ServerResponse }[] = [];
  const hold: RequestListener = (req, res) => {
    begun.push({ path: String(req.url), res });
  };
  const port = await freePort();
  await serve(listener ?? hold, { port, host: '127.0.0.1', setting: 'PORT', graceMs: 2_000 }, closer);
  return {
    port,
    paths: () => begun.map(({ path }) => path),
    write: (index: number, text: string) => begun[index]?.res.write(text),
    answer: (index: number) => begun[index]?.res.end(`answer ${index};`),
    begins: (count: number) => waitFor(() => (begun.length >= count ? true : undefined), `${count} requests`),
  };
}

const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: parley\r\n${more}\r\n`;

describe('requests that one connection sends at once', () => {
  it('run one after the other', async () => {
    const server = await start();
    const client = dial(server.port, get('/1') + get('/2') + get('/3', 'Connection: close\r\n'));

    await server.begins(1);
    expect(server.paths()).toEqual(['/1']);
    server.answer(0);
    await server.begins(2);
    expect(server.paths()).toEqual(['/1', '/2']);
    server.answer(1);
    await server.begins(3);
    server.answer(2);

    expect((await client.ended).match(/answer \d/g)).toEqual(['answer 0', 'answer 1', 'answer 2']);
  });

  it('have their bodies', async () => {
    const bodies: string[] = [];
    const server = await start((req, res) => {
      let body = '';
      req.setEncoding('utf8').on('data', (part: string) => (body += part));
      req.on('end', () => {
        bodies.push(body);
        res.end('read');
      });
    });
    const post = (body: string, more = '') =>
      `POST / HTTP/1.1\r\nHost: parley\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
    const long = 'x'.repeat(500_000);

    await dial(server.port, post('one') + post(long) + post('three', 'Connection: close\r\n')).ended;

    expect(bodies).toEqual(['one', long, 'three']);
  });

  it('are closed without an answer where too many wait', async () => {
    const server = await start();

    await dial(server.port, get('/').repeat(WAITING_MAX + 2)).ended;

    expect(server.paths()).toHaveLength(1);
  });

  it('do not run once their client has left', async () => {
    const server = await start();
    const client = dial(server.port, get('/1') + get('/2'));
    await server.begins(1);

    client.socket.destroy();
    await client.ended;
    server.answer(0);
    const next = dial(server.port, get('/3'));
    await next.heard('').then(() => server.begins(2));

    expect(server.paths()).toEqual(['/1', '/3']);
  });

  it('do not run behind the answer that says that the server stops', async () => {
    const server = await start();
    const client = dial(server.port, get('/1') + get('/2'));
    await server.begins(1);

    const closing = closer.close();
    server.answer(0);
    const text = await client.ended;
    await closing;

    expect(server.paths()).toEqual(['/1']);
    expect(text).toMatch(/Connection: close\r\n[^]*answer 0;$/);
  });
});

describe('a fault behind an answer that is under way is answered behind it:', () => {
  const POST = 'POST /2 HTTP/1.1\r\nHost: parley\r\n';

  it.each([
    ['no HTTP', 'nonsense\r\n\r\n', ['/1']],
    ['no HTTP behind a request that waits', `${get('/2')}nonsense\r\n\r\n`, ['/1', '/2']],
    ['a body that breaks off into nonsense', `${POST}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`, ['/1']],
  ])('%s', async (_what, fault, run) => {
    const server = await start();
    const client = dial(server.port, get('/1') + fault);
    await server.begins(1);
    server.write(0, 'begun,');
    await client.heard('begun,');

    for (const index of run.keys()) {
      await server.begins(index + 1);
      server.answer(index);
    }
    const text = await client.ended;

    expect(server.paths()).toEqual(run);
    expect(text).toMatch(/^HTTP\/1\.1 200 [^]*begun,[^]*answer 0;[^]*HTTP\/1\.1 400 [^]*invalid_request[^]*}$/);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toHaveLength(run.length + 1);
    expect(text.match(/answer \d;/g)).toEqual(run.map((_path, index) => `answer ${index};`));
  });

  it('a body that cannot come in time, because it waits', async () => {
    const begun: ServerResponse[] = [];
    const server = createServer({ requestTimeout: 1_000, connectionsCheckingInterval: 20 });
    const answers = registerAnswers(server);
    server.on(
      'request',
      serializePipelined((_req, res) => void begun.push(res), answers),
    );
    refuseMalformed(server, answers);
    const timedOut = new Promise((resolve) => server.once('clientError', resolve));
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const client = dial((server.address() as AddressInfo).port);
    client.socket.write(`${get('/1')}${POST}Content-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`);
    await waitFor(() => begun[0], 'the first request');
    begun[0]?.write('begun,');

    await timedOut;
    begun[0]?.end('answer 0;');

    expect(await client.ended).toMatch(/^HTTP\/1\.1 200 [^]*begun,[^]*answer 0;[^]*HTTP\/1\.1 408 [^]*}$/);
    expect(begun).toHaveLength(1);
    await new Promise((resolve) => server.close(resolve));
  });

  it('a client that has left within a body that waits is not answered', async () => {
    const server = await start();
    const client = dial(server.port, `${get('/1')}${POST}Content-Length: 10\r\n\r\nhalf`);
    await server.begins(1);

    client.socket.end();

    expect(await client.ended).toBe('');
  });
});

describe('bodies that wait behind a request', () => {
  const BODY = 'x'.repeat(50_000);
  const post = `POST / HTTP/1.1\r\nHost: parley\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

  it('are as many as a client may send ahead', async () => {
    const server = await start((req, res) => void req.resume().on('end', () => res.end('read;')));
    const client = dial(server.port, post.repeat(6));

    await waitUntil(() => client.text().match(/read;/g)?.length === 6, 'all answers');
    client.socket.destroy();
  });

  it('take no more than a connection may hold', async () => {
    const server = await start();

    await dial(server.port, post.repeat(40)).ended;

    expect(server.paths()).toHaveLength(1);
  });

  it('take no more than all connections may hold, which those that have ended give back', async () => {
    let begun = 0;
    const server = createServer();
    const room = { connectionBytesMax: 250_000, processBytesMax: 400_000 };
    server.on(
      'request',
      serializePipelined(() => (begun += 1), registerAnswers(server), room),
    );
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const begins = (count: number) => waitFor(() => (begun === count ? true : undefined), `${count} requests`);
    const open = new Set([1, 2, 3].map(() => dial(port, post)));
    await begins(3);

    // The third has no room beside the other two.
    for (const client of open) client.socket.write(post.repeat(3));
    const cut = await Promise.race([...open].map((client) => client.ended.then(() => client)));
    open.delete(cut);
    for (const { socket } of open) socket.destroy();
    await Promise.all([...open].map(({ ended }) => ended));

    const next = dial(port, get('/1') + post.repeat(3));
    await begins(4);
    const last = dial(port, get('/2') + post.repeat(3));
    await begins(5);
    expect([next, last].map(({ socket }) => socket.destroyed)).toEqual([false, false]);
    for (const { socket } of [next, last]) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});
