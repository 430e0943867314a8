import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { afterEach } from '@jest/globals';
import express from 'express';
import type { Response } from 'express';

import { openForwarder } from '../../api/relay/answer.ts';
import type { RelayTimes } from '../../api/relay/answer.ts';
import type { RelayLab } from './relay-lab.ts';
import { SHARD } from './request-lab.ts';

export interface ServeOptions extends RelayTimes {
  /** The client does not read until its socket is resumed. */
  lazy?: boolean;
  /** What happens between the opening of the relay and the sending of the stream. */
  between?: Promise<unknown>;
  /** The stream may have begun. */
  existing?: boolean;
  /** The request's time limit. */
  timeoutMs?: number;
}

export interface ServedStream {
  /** The ingress's end. */
  res: Response;
  /** The client's end. */
  socket: Socket;
  /** What the client has read so far, headers included. */
  text(): string;
  /** Resolves with everything once the server has closed the connection. */
  ended: Promise<string>;
  close(): void;
}

/** Serves one request's stream to one client over a real socket; resolves once the ingress has its call. */
async function serveStream(relay: RelayLab, requestId: string, options: ServeOptions): Promise<ServedStream> {
  const { lazy = false, between, ...times } = options;
  const opened = Promise.withResolvers<Response>();
  const app = express();
  app.get('/', async (_req, res) => {
    const forwarder = openForwarder(relay.hub, res, { shard: SHARD, requestId, timeoutMs: 60_000, ...times });
    opened.resolve(res);
    await between;
    await forwarder.forward({ requestId, created: 1, model: 'mobius' });
  });
  const server = createServer(app);
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
  return {
    res: await opened.promise,
    socket,
    text,
    ended: ended.promise,
    close() {
      socket.destroy();
      server.close();
    },
  };
}

/** What serves streams of the lab to the tests of a file or block; each test's are closed behind it. */
export function useStreams(relay: () => RelayLab): (requestId: string, options: ServeOptions) => Promise<ServedStream> {
  const streams: ServedStream[] = [];
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.close();
  });
  return async (requestId, options) => {
    const stream = await serveStream(relay(), requestId, options);
    streams.push(stream);
    return stream;
  };
}
