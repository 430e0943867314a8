import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Express } from 'express';

import { deferContinue } from '../../api/http/connection-guards.ts';

/** More than the client keeps a connection that nobody uses, so that none is closed while a call goes out on it. */
const KEEP_ALIVE_MS = 60_000;

export interface Listening {
  /** supertest calls it as it is: for an application it would open a server, and a connection, for each call. */
  server: Server;
  url: string;
  /** Ends open connections, too. */
  close(): Promise<void>;
}

/** Serves an application on a free port of 127.0.0.1. */
export async function listen(app: Express): Promise<Listening> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, app);
  deferContinue(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // An address of a pipe would be a string.
  const { port } = server.address() as AddressInfo;
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
