import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { afterEach, beforeEach } from '@jest/globals';

import { createHttpClient } from '../../workers/providers/http-client.ts';
import type { HttpClient } from '../../workers/providers/http-client.ts';
import { lazily } from './lazily.ts';
import type { Started } from './lazily.ts';

/** An HTTP server that answers as a test tells it, for what no well-behaved provider would send. */
export interface ScriptedServer {
  url: string;
  /** Connections that were ever opened. */
  connections(): number;
  /** Connections that are open. */
  open(): number;
  /** Requests whose connection the client has closed before the answer was whole. */
  abandoned(): number;
  requests: { url: string; headers: IncomingMessage['headers']; body: string }[];
  /** Closes the connections that carry no request. */
  closeIdle(): Promise<void>;
  answer(script: (res: ServerResponse, req: IncomingMessage) => void): void;
  close(): Promise<void>;
}

export async function startScriptedServer(): Promise<ScriptedServer> {
  let script: (res: ServerResponse, req: IncomingMessage) => void = (res) => res.end();
  let connections = 0;
  let open = 0;
  let abandoned = 0;
  const requests: ScriptedServer['requests'] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8');
    req.on('data', (part: string) => (body += part));
    req.on('end', () => {
      requests.push({ url: req.url ?? '', headers: req.headers, body });
      script(res, req);
    });
    res.on('close', () => {
      if (!res.writableFinished) abandoned += 1;
    });
  });
  server.on('connection', (socket) => {
    connections += 1;
    open += 1;
    socket.once('close', () => (open -= 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    connections: () => connections,
    open: () => open,
    abandoned: () => abandoned,
    requests,
    closeIdle: async () => {
      server.closeIdleConnections();
      await new Promise(setImmediate);
    },
    answer: (next) => (script = next),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** A server of its own for each test, and the client that calls it. Stands at the top of a `describe`. */
export function useScriptedServer(): { server: ScriptedServer; http: HttpClient } {
  const server: Started<ScriptedServer> = { value: undefined };
  const http: Started<HttpClient> = { value: undefined };
  beforeEach(async () => {
    server.value = await startScriptedServer();
    http.value = createHttpClient();
  });
  afterEach(async () => {
    await http.value?.close();
    await server.value?.close();
  });
  return { server: lazily(server, 'server'), http: lazily(http, 'client') };
}
