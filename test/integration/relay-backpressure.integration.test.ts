import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import type { Response } from 'express';

import { openForwarder } from '../../api/relay/forward.ts';
import type { RelayTimes } from '../../api/relay/forward.ts';
import { waitFor } from '../support/chat.ts';
import { openRelayLab } from '../support/relay-lab.ts';
import type { RelayLab } from '../support/relay-lab.ts';
import { SHARD } from '../support/request-lab.ts';

const MEGABYTE = 1024 * 1024;

/** A client that reads only while it is told to. */
interface LazyClient {
  socket: Socket;
  text(): string;
  /** Resolves with everything once the server has closed the connection. */
  ended: Promise<string>;
}

describe('a client that does not read', () => {
  let relay: RelayLab;
  const servers: Server[] = [];
  const clients: LazyClient[] = [];
  beforeAll(async () => {
    relay = await openRelayLab();
  });
  afterEach(() => {
    for (const { socket } of clients.splice(0)) socket.destroy();
    for (const server of servers.splice(0)) server.close();
  });
  afterAll(async () => {
    await relay.close();
  });

  /** Serves one request's stream; resolves with the response once a client has asked for it and does not read. */
  async function serve(requestId: string, times: RelayTimes, lazy = true) {
    const opened = Promise.withResolvers<Response>();
    const app = express();
    app.get('/', async (_req, res) => {
      opened.resolve(res);
      const forwarder = openForwarder(relay.hub, res, { shard: SHARD, requestId, timeoutMs: 60_000, ...times });
      await forwarder.forward({ requestId, created: 1, model: 'mobius' });
    });
    const server = createServer(app);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const socket = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1');
    const parts: Buffer[] = [];
    const text = () => Buffer.concat(parts).toString();
    const ended = Promise.withResolvers<string>();
    socket.on('error', () => undefined);
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('end', () => {
      ended.resolve(text());
    });
    if (lazy) socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n\r\n');
    const client = { socket, text, ended: ended.promise };
    clients.push(client);
    return { res: await opened.promise, client };
  }

  it('makes the ingress keep no more than its socket takes, and misses nothing when it reads on', async () => {
    const request = await relay.start();
    const { res, client } = await serve(request.requestId, {});
    let mostKept = 0;

    for (let entry = 0; entry < 120; entry += 1) {
      await request.append('x'.repeat(100_000));
      mostKept = Math.max(mostKept, res.writableLength);
    }
    await request.finish();
    await waitFor(() => (res.writableNeedDrain ? true : undefined), 'the back-pressure');
    mostKept = Math.max(mostKept, res.writableLength);
    expect(mostKept).toBeLessThan(MEGABYTE);

    client.socket.resume();
    const text = await client.ended;
    const ids = text.match(/^id: \d+$/gm) ?? [];
    expect(ids).toEqual(Array.from({ length: 122 }, (_, index) => `id: ${index + 1}`));
    expect(text.match(/x{100000}/g)).toHaveLength(120);
  });

  it('gets no pings on top of what it has not read', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { pingMs: 5 });
    await writeUntilBlocked(request, res);
    const kept = res.writableLength;

    // A client that reads has several in the same time.
    const other = await serve((await relay.start()).requestId, { pingMs: 5 }, false);
    await waitFor(() => (other.client.text().split(': ping').length > 6 ? true : undefined), 'its pings');

    expect(res.writableLength).toBe(kept);
  });

  it('is dropped when it has not read on for the drain time', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { drainMs: 200 });

    await writeUntilBlocked(request, res);

    await waitFor(() => (res.destroyed ? true : undefined), 'the connection to be dropped');
    await waitFor(() => (relay.hub.size() === 0 ? true : undefined), 'its reader to be closed');
  });

  it('is dropped in the same way when it is only the end that it does not read', async () => {
    const request = await relay.start();
    const { res } = await serve(request.requestId, { drainMs: 200 });

    await request.finish('x'.repeat(20 * MEGABYTE));

    await waitFor(() => (res.destroyed ? true : undefined), 'the connection to be dropped');
  });
});

async function writeUntilBlocked(request: { append(text: string): Promise<void> }, res: Response): Promise<void> {
  await waitFor(async () => {
    await request.append('x'.repeat(500_000));
    return res.writableNeedDrain ? true : undefined;
  }, 'the socket to be full');
}
