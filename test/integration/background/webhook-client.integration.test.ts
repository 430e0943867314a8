import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { createWebhookClient } from '../../../shared/http/webhook-client.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../../support/webhook-receiver.ts';

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
beforeEach(() => {
  receiver.received.length = 0;
  receiver.answerWith((res) => res.writeHead(204).end());
});
afterAll(() => receiver.close());

const BODY = '{"type":"ping"}';
const portOf = () => new URL(receiver.url).port;
const at = (...addresses: string[]) => ({
  resolve: () => Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))),
});

describe('a name', () => {
  it('is resolved once, and the connection goes to what it was resolved to', async () => {
    let lookUps = 0;
    const client = createWebhookClient({
      allowPrivate: true,
      resolve: () => {
        lookUps += 1;
        return Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
      },
    });

    const reply = await client.send(`http://receiver.invalid:${portOf()}/a?b=c`, { 'x-one': '1' }, BODY);

    expect(reply).toEqual({ status: 204 });
    expect(lookUps).toBe(1);
    expect(receiver.received).toMatchObject([
      { path: '/a?b=c', text: BODY, headers: { host: `receiver.invalid:${portOf()}`, 'x-one': '1' } },
    ]);
  });

  it.each([
    ['a private address', ['127.0.0.1']],
    ['a private address beside a public one', ['8.8.8.8', '127.0.0.1']],
    ['a private address in IPv6', ['2606:4700:4700::1111', '::ffff:127.0.0.1']],
  ])('that has %s is refused before anything is connected', async (_what, addresses) => {
    const client = createWebhookClient({ allowPrivate: false, ...at(...addresses) });

    const reply = await client.send(`https://receiver.example.com:${portOf()}/`, {}, BODY);

    expect(reply).toEqual({ error: 'The host of the receiver is not on the public Internet.' });
    expect(receiver.received).toEqual([]);
  });

  it('a name that nobody knows is a sentence', async () => {
    const resolve = () => Promise.reject(new Error('ENOTFOUND'));
    const client = createWebhookClient({ allowPrivate: false, resolve });

    expect(await client.send('https://receiver.example.com/', {}, BODY)).toEqual({
      error: 'The host name of the receiver could not be resolved.',
    });
  });

  it('that takes too long to resolve ends the attempt', async () => {
    const resolve = () => new Promise<never>(() => undefined);
    const client = createWebhookClient({ allowPrivate: false, timeoutMs: 200, resolve });

    expect((await client.send('https://receiver.example.com/', {}, BODY)).error).toMatch(
      /did not answer within 0\.2 s/,
    );
  });
});

describe('a receiver', () => {
  const client = createWebhookClient({ allowPrivate: true, timeoutMs: 1_000 });

  it('whose stored URL is no longer allowed is not asked', async () => {
    const strict = createWebhookClient({ allowPrivate: false });

    expect((await strict.send(receiver.url, {}, BODY)).error).toBe('The URL of the receiver must begin with https://.');
    expect((await strict.send('https://[::127.0.0.1]/', {}, BODY)).error).toMatch(/public Internet/);
    expect(receiver.received).toEqual([]);
  });

  it('a receiver that does not answer ends the attempt', async () => {
    receiver.answerWith(() => undefined);

    expect(await client.send(receiver.url, {}, BODY)).toEqual({ error: 'The receiver did not answer within 1 s.' });
  });

  it('whose certificate nobody vouches for is not sent anything', async () => {
    const file = (name: string) => readFileSync(join(import.meta.dirname, '..', '..', 'support', 'tls', name));
    let requests = 0;
    const server = createServer({ cert: file('localhost.cert.pem'), key: file('localhost.key.pem') }, (_req, res) => {
      requests += 1;
      res.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // A server that listens on a port has an address of this kind.
    const { port } = server.address() as AddressInfo;

    const named = createWebhookClient({ allowPrivate: true, ...at('127.0.0.1') });
    expect((await named.send(`https://localhost:${port}/`, {}, BODY)).error).toMatch(/TLS certificate/);
    expect(requests).toBe(0);
    await new Promise((resolve) => server.close(resolve));
  });

  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
  const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';
  it.each([
    ['100 Continue', [CONTINUE, NO_CONTENT], 204],
    ['100 Continue in the segment of its answer', [CONTINUE + NO_CONTENT], 204],
    ['100 Continue twice', [CONTINUE, CONTINUE, NO_CONTENT], 204],
    ['100 Continue in pieces', [...Array.from(CONTINUE), NO_CONTENT], 204],
    ['102 and 103', ['HTTP/1.1 102 Processing\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\n\r\n', NO_CONTENT], 204],
    ['100 Continue before a refusal', [CONTINUE, 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'], 401],
  ])('that says %s first is understood', async (_what, segments, status) => {
    receiver.answerWith((res) => {
      const write = (at: number) => {
        const segment = segments[at];
        if (segment !== undefined) res.socket?.write(segment, () => setImmediate(write, at + 1));
      };
      write(0);
    });

    expect(await client.send(receiver.url, {}, BODY)).toEqual({ status });
    expect(receiver.received).toHaveLength(1);
  });

  it('a receiver that is not there is a sentence', async () => {
    expect((await client.send('http://127.0.0.1:1/', {}, BODY)).error).toBe(
      'The connection to the receiver failed (ECONNREFUSED).',
    );
  });

  it('a receiver that speaks another protocol is a sentence', async () => {
    const server = createTcpServer((socket) => {
      socket
        .on('error', () => undefined)
        .resume()
        .end('SSH-2.0-OpenSSH_9.9\r\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;

    expect(await client.send(`http://127.0.0.1:${port}/`, {}, BODY)).toEqual({
      error: 'The connection to the receiver failed.',
    });
    await new Promise((resolve) => server.close(resolve));
  });

  it('may answer without an end: its status counts, and no more than 64 KB of it are read', async () => {
    let written = 0;
    receiver.answerWith((res) => {
      res.writeHead(200);
      const part = Buffer.alloc(16 * 1024);
      const write = () => {
        if (res.destroyed || written > 64 * 1024 * 1024) return;
        written += part.length;
        res.write(part, write);
      };
      write();
    });

    expect(await client.send(receiver.url, {}, BODY)).toEqual({ status: 200 });
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  it('is asked directly, whatever proxy the environment names', async () => {
    const before = process.env['http_proxy'];
    process.env['http_proxy'] = 'http://127.0.0.1:1';
    try {
      expect(await client.send(receiver.url, {}, BODY)).toEqual({ status: 204 });
    } finally {
      if (before === undefined) delete process.env['http_proxy'];
      else process.env['http_proxy'] = before;
    }
  });
});
