import type { RequestListener, ServerResponse } from 'node:http';

import { afterEach, describe, expect, it } from '@jest/globals';

import { freePort } from '../../scripts/embedded/ports.ts';
import { WAITING_MAX } from '../../api/http/one-at-a-time.ts';
import { serve } from '../../api/http/serve.ts';
import { createCloser } from '../../shared/lifecycle/closer.ts';
import { waitFor } from '../support/chat.ts';
import { dial } from '../support/dial.ts';

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
