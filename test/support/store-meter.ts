import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** Stands between the service and a store and counts what the service asks of it, whichever server answers. */
export interface StoreMeter {
  /** The store's address by way of the meter. */
  url: string;
  /** Commands since the start. */
  commands(): number;
  bytesIn(): number;
  bytesOut(): number;
  close(): Promise<void>;
}

/** Where the first message of the bytes ends, undefined where there is more of it to come; and whether it counts. */
type ReadMessage = (bytes: Buffer) => { end: number; counts: boolean } | undefined;

/** MongoDB's wire protocol: length, two ids, operation code; then flags, section kind and a BSON document. */
const HEADER_BYTES = 16;
const OPERATION_CODE_AT = 12;
const OP_MSG = 2013;
/** Behind flags, section kind, the document's length and the type of its first element. */
const NAME_AT = HEADER_BYTES + 4 + 1 + 4 + 1;
const HEARTBEATS: ReadonlySet<string> = new Set(['hello', 'isMaster', 'ismaster', 'ping', 'endSessions']);

const readMongo: ReadMessage = (bytes) => {
  const end = bytes.length < HEADER_BYTES ? Infinity : bytes.readInt32LE(0);
  if (bytes.length < end) return undefined;
  if (bytes.readInt32LE(OPERATION_CODE_AT) !== OP_MSG) return { end, counts: false };
  return { end, counts: !HEARTBEATS.has(bytes.toString('latin1', NAME_AT, bytes.indexOf(0, NAME_AT))) };
};

/** Redis' protocol: `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`. */
const readRedis: ReadMessage = (bytes) => {
  let at = 0;
  const readNumber = () => {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const number = Number(bytes.toString('latin1', at + 1, lineEnd));
    at = lineEnd + 2;
    return number;
  };
  const count = readNumber();
  for (let index = 0; index < (count ?? 0); index += 1) {
    const length = readNumber();
    if (length === undefined) return undefined;
    at += length + 2;
  }
  return count === undefined || at > bytes.length ? undefined : { end: at, counts: true };
};

async function meter(storeUrl: string, read: ReadMessage): Promise<StoreMeter> {
  const url = new URL(storeUrl);
  const port = Number(url.port);
  const sockets = new Set<Socket>();
  let [commands, bytesIn, bytesOut] = [0, 0, 0];
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    let rest: Buffer = Buffer.alloc(0);
    client.on('data', (part: Buffer) => {
      bytesIn += part.length;
      rest = rest.length === 0 ? part : Buffer.concat([rest, part]);
      for (let message = read(rest); message !== undefined; message = read(rest)) {
        if (message.counts) commands += 1;
        rest = rest.subarray(message.end);
      }
    });
    upstream.on('data', (part: Buffer) => {
      bytesOut += part.length;
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      const end = () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      };
      socket.on('error', end).on('close', end);
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  // A TCP server that listens has such an address.
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    commands: () => commands,
    bytesIn: () => bytesIn,
    bytesOut: () => bytesOut,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => {
          resolve();
        });
      }),
  };
}

/** Heartbeats are no commands. */
export const meterMongo = (storeUrl: string): Promise<StoreMeter> => meter(storeUrl, readMongo);

/** A script is one command, whatever it runs. */
export const meterRedis = (storeUrl: string): Promise<StoreMeter> => meter(storeUrl, readRedis);
