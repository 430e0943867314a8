import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** Stands between the service and a store, and can take the store away from it. */
export interface StoreProxy {
  /** The store's address by way of the proxy. */
  url: string;
  /** The store is gone: connections break and new ones are refused. */
  cut(): void;
  /** The store hangs: connections stay and new ones are taken, and nothing is answered any more. */
  stall(): void;
  /** The store is back. What came while it was stalled reaches it now. */
  restore(): void;
  close(): Promise<void>;
}

export async function proxyTo(storeUrl: string): Promise<StoreProxy> {
  const url = new URL(storeUrl);
  const targetPort = Number(url.port);
  const sockets = new Set<Socket>();
  let state: 'up' | 'cut' | 'stalled' = 'up';

  const server = createServer((client) => {
    if (state === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(targetPort, '127.0.0.1');
    const pair = [client, upstream];
    for (const socket of pair) {
      sockets.add(socket);
      if (state === 'stalled') socket.pause();
      const end = () => {
        for (const either of pair) either.destroy();
        sockets.delete(socket);
      };
      socket.on('error', end).on('close', end);
    }
    client.on('data', (bytes) => upstream.write(bytes));
    upstream.on('data', (bytes) => client.write(bytes));
    if (state === 'stalled') for (const socket of pair) socket.pause();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });

  // An experiment ends its processes, and with them the connections; the proxy alone must not keep it running.
  server.unref();

  // A TCP server that listens has such an address.
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut() {
      state = 'cut';
      for (const socket of sockets) socket.destroy();
    },
    stall() {
      state = 'stalled';
      for (const socket of sockets) socket.pause();
    },
    restore() {
      state = 'up';
      for (const socket of sockets) socket.resume();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
