import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import { afterEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import type { Response } from 'express';

import type { AcceptRoute, OpenRelay } from '../../../api/chat/accept.ts';
import { createRespond } from '../../../api/chat/chat-endpoints.ts';
import type { ParsedChatBody } from '../../../api/chat/chat-body.ts';
import { systemClock } from '../../../shared/lifecycle/clock.ts';
import { waitUntil } from '../../support/chat.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const MEGABYTE = 1024 * 1024;
/** More than the sockets of both ends take. */
const ANSWER = 'x'.repeat(20 * MEGABYTE);

const BODY: ParsedChatBody = {
  request: { messages: [{ role: 'user', content: 'Hi' }], maxTokens: 1, jsonMode: false },
  ignoredFields: [],
};

describe('the client of a complete answer', () => {
  const opened: { server: Server; socket: Socket }[] = [];
  const relay = useStarted('relay', openRelayLab);

  afterEach(() => {
    for (const { server, socket } of opened.splice(0)) {
      socket.destroy();
      server.close();
    }
  });

  /** Asks for an answer that is there, and reads nothing of it. */
  async function ask(drainMs: number): Promise<{ res: Response; socket: Socket }> {
    const request = await relay.start();
    await request.finish(ANSWER);
    const { requestId } = request;
    const { complete } = createRespond({
      accept: <R>(_res: Response, _route: AcceptRoute, _body: ParsedChatBody, openRelay: OpenRelay<R>) =>
        Promise.resolve({
          head: { requestId, created: 1, model: 'mobius' },
          relay: openRelay(SHARD, requestId, true),
          replayed: false,
        }),
      hub: relay.hub,
      records: { place: () => Promise.resolve(undefined), find: () => Promise.resolve(undefined) },
      clock: systemClock,
      requestTimeoutMs: 60_000,
      stopping: new AbortController().signal,
      relayTimes: { drainMs },
    });
    const called = Promise.withResolvers<Response>();
    const app = express();
    app.get('/', async (req, res) => {
      called.resolve(res);
      await complete(req, res, BODY);
    });
    const server = createServer(app).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    // A TCP server that listens has such an address.
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    opened.push({ server, socket });
    socket.on('error', () => undefined);
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n\r\n');
    return { res: await called.promise, socket };
  }

  it('is dropped when it takes nothing for the drain time', async () => {
    const { res } = await ask(300);
    await waitUntil(() => res.writableLength > MEGABYTE, 'the answer to wait for its reader');

    await waitUntil(() => res.destroyed, 'the connection to be dropped');
    await waitUntil(() => relay.hub.size() === 0, 'its reader to be closed');
  });

  it('has all of it when it reads slowly, even if that takes longer than the drain time', async () => {
    const { socket } = await ask(2_000);
    const start = performance.now();
    let bytes = 0;
    let portion = 0;
    socket.on('data', (part: Buffer) => {
      bytes += part.length;
      portion += part.length;
      if (portion < MEGABYTE) return;
      portion = 0;
      socket.pause();
      setTimeout(() => socket.resume(), 150);
    });
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));

    expect(bytes).toBeGreaterThan(ANSWER.length);
    expect(performance.now() - start).toBeGreaterThan(2_000);
  });
});
