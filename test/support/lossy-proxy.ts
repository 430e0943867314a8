import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A TCP proxy that can lose a server's answer: the command has happened, and its caller cannot know. */
export interface LossyProxy {
  port: number;
  /** The server's address by way of the proxy. */
  url: string;
  /** The answers to lose from now on, instead of none; each loss cuts its connection. */
  loseReplies(when: () => boolean): void;
  /** Down: cuts every connection and refuses new ones, as a server that is away. */
  setDown(down: boolean): void;
  /** Cuts the connection instead of passing the next answer on, behind a call with this text. Resolves when that has happened. */
  loseNextReply(behind?: string): Promise<void>;
  /** New connections wait until then. */
  hold(until: Promise<unknown>): void;
  close(): Promise<void>;
}

export async function startLossyProxy(serverUrl: string): Promise<LossyProxy> {
  const url = new URL(serverUrl);
  const targetPort = Number(url.port);
  const sockets = new Set<Socket>();
  let onLost: (() => void) | undefined;
  /** Must be asked before an answer is lost. */
  let awaited = '';
  let loses = () => false;
  let isDown = false;
  let held: Promise<unknown> = Promise.resolve();

  function pass(client: Socket): void {
    if (client.destroyed) return;
    const upstream = connect(targetPort, '127.0.0.1');
    const cut = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', cut).on('close', () => {
        sockets.delete(socket);
        cut();
      });
    }
    client.on('data', (bytes: Buffer) => {
      if (bytes.includes(awaited)) awaited = '';
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if ((onLost === undefined || awaited !== '') && !loses()) {
        client.write(bytes);
        return;
      }
      onLost?.();
      onLost = undefined;
      cut();
    });
  }

  const server = createServer((client) => {
    if (isDown) {
      client.destroy();
      return;
    }
    client.on('error', () => client.destroy());
    void held.then(() => {
      pass(client);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });

  // An experiment ends its processes, and with them the connections; the proxy alone must not keep it running.
  server.unref();

  // A TCP server that listens has such an address.
  const { port } = server.address() as AddressInfo;
  url.port = String(port);
  // MongoDB's driver looks again for a server whose connection was cut; half a second later, unless told otherwise.
  if (url.protocol === 'mongodb:') url.searchParams.set('minHeartbeatFrequencyMS', '20');
  return {
    port,
    url: url.href,
    loseReplies(when) {
      loses = when;
    },
    setDown(down) {
      isDown = down;
      if (down) for (const socket of sockets) socket.destroy();
    },
    loseNextReply: (behind = '') =>
      new Promise((resolve) => {
        awaited = behind;
        onLost = resolve;
      }),
    hold(until) {
      held = until;
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
