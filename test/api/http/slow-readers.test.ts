import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';

import { afterEach, describe, expect, it } from '@jest/globals';

import { registerAnswers } from '../../../api/http/pipelining.ts';
import { dropSlowReaders } from '../../../api/http/connection-guards.ts';
import { waitUntil } from '../../support/chat.ts';

/** More than the buffers of both sides take on loopback. */
const LARGE = 24 * 1024 * 1024;
const CUT_MS = 400;
/** Longer than a busy machine lets this process stand still. */
const KEPT_MS = 1_500;

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function serveWith(
  listener: RequestListener,
  drainMs = KEPT_MS,
): Promise<{ port: number; open: () => Promise<number> }> {
  const server = createServer(listener);
  const stop = dropSlowReaders(registerAnswers(server), { drainMs, everyMs: 50 });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(async () => {
    stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const open = () =>
    new Promise<number>((resolve) => {
      server.getConnections((_error, count) => {
        resolve(count);
      });
    });
  return { port: (server.address() as AddressInfo).port, open };
}

/** Asks and reads nothing yet. */
async function ask(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.pause().on('error', () => undefined);
  ends.push(() => Promise.resolve(void socket.destroy()));
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write('GET / HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n\r\n');
  return socket;
}

/** Begins to read once the connection is full, has `end` called when the limit is long over, and returns the last it heard. */
async function readLate(socket: Socket, end: () => void): Promise<string> {
  let text = '';
  const all = new Promise<void>((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => setTimeout(resolve, CUT_MS / 4));
  socket
    .setEncoding('utf8')
    .on('data', (part: string) => (text = (text + part).slice(-1_000)))
    .resume();
  await new Promise((resolve) => setTimeout(resolve, 2 * KEPT_MS));
  end();
  await all;
  return text;
}

describe('a client that does not read its answer', () => {
  it.each<[string, RequestListener]>([
    ['written at once', (_req, res) => res.end('x'.repeat(LARGE))],
    [
      'sent as it is read from elsewhere',
      (_req, res) => {
        const endless = new Readable({ read: () => void endless.push(Buffer.alloc(65_536)) });
        endless.pipe(res).on('close', () => endless.destroy());
      },
    ],
  ])('%s, loses its connection', async (_what, listener) => {
    const begun = Promise.withResolvers<undefined>();
    const { port, open } = await serveWith((req, res) => {
      listener(req, res);
      begun.resolve(undefined);
    }, CUT_MS);
    await ask(port);
    await begun.promise;

    await waitUntil(async () => (await open()) === 0, 'the end of the connection');
  });
});

describe('a client keeps its connection', () => {
  it('that reads slowly', async () => {
    const { port } = await serveWith((_req, res) => res.end('x'.repeat(LARGE)));
    const socket = await ask(port);
    let length = 0;
    const startedAt = performance.now();
    const all = new Promise<void>((resolve) => socket.once('close', resolve));
    // Each pause is far shorter than the limit, all of them together are longer.
    socket.on('data', (part: Buffer) => {
      length += part.length;
      socket.pause();
      setTimeout(() => socket.resume(), 8);
    });
    socket.resume();
    await all;

    expect(length).toBeGreaterThan(LARGE);
    expect(performance.now() - startedAt).toBeGreaterThan(KEPT_MS);
  });

  it('that has read all there is and waits for more', async () => {
    let end: () => void = () => undefined;
    const { port } = await serveWith((_req, res) => {
      res.write('x'.repeat(LARGE));
      end = () => res.end('the end');
    });
    const socket = await ask(port);

    expect(
      await readLate(socket, () => {
        end();
      }),
    ).toContain('the end');
  });

  it('that has read a large answer late, and waits for the one behind it', async () => {
    let end: () => void = () => undefined;
    const { port } = await serveWith((req, res) => {
      if (req.url === '/') res.end('x'.repeat(LARGE));
      else end = () => res.end('the end');
    });
    const socket = connect(port, '127.0.0.1');
    ends.push(() => Promise.resolve(void socket.destroy()));
    socket.pause().on('error', () => undefined);
    const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: parley\r\n${more}\r\n`;
    socket.write(get('/') + get('/quiet', 'Connection: close\r\n'));

    expect(
      await readLate(socket, () => {
        end();
      }),
    ).toContain('the end');
  });
});
