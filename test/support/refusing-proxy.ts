import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

import mongoose from 'mongoose';

/** What MongoDB says instead of doing a command. */
interface Refusal {
  code: number;
  codeName: string;
}

/** `text`: the command's document as JSON. */
type RefusalOf = (command: string, text: string) => Refusal | undefined;

/** A MongoDB proxy that answers commands with an error of the server: full, not allowed to, interrupted. */
export interface RefusingProxy {
  port: number;
  /** The server's address by way of the proxy. */
  url: string;
  /** Refuses, from now on, the commands for which there is a refusal; undefined lets every command pass. */
  refuse(refusalOf: RefusalOf | undefined): void;
  /** Commands that were refused. */
  refused(): number;
  close(): Promise<void>;
}

const { deserialize, serialize } = mongoose.mongo.BSON;
const HEADER_BYTES = 16;
const OP_MSG = 2013;
/** Of an OP_MSG: its flags, and the byte that tells the kind of its first section. */
const BODY_AT = HEADER_BYTES + 5;

/** Undefined: the message is no OP_MSG. */
function bodyOf(message: Buffer): object | undefined {
  if (message.readInt32LE(12) !== OP_MSG || message[BODY_AT - 1] !== 0) return undefined;
  const bytes = message.readInt32LE(BODY_AT);
  return deserialize(message.subarray(BODY_AT, BODY_AT + bytes));
}

/** The layout of an OP_MSG: github.com/mongodb/specifications, source/message/OP_MSG.md. */
function answerTo(message: Buffer, { code, codeName }: Refusal): Buffer {
  const body = serialize({ ok: 0, code, codeName, errmsg: `refused: ${codeName}` });
  const answer = Buffer.alloc(BODY_AT + body.length);
  answer.writeInt32LE(answer.length, 0);
  answer.writeInt32LE(message.readInt32LE(4), 8);
  answer.writeInt32LE(OP_MSG, 12);
  answer.set(body, BODY_AT);
  return answer;
}

/** Cuts a stream of bytes into MongoDB's messages, which begin with their length. */
function createSplitter(onMessage: (message: Buffer) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= HEADER_BYTES && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0);
      onMessage(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
}

export async function startRefusingProxy(serverUrl: string): Promise<RefusingProxy> {
  const url = new URL(serverUrl);
  const targetPort = Number(url.port);
  const sockets = new Set<Socket>();
  let refusalOf: RefusalOf | undefined;
  let count = 0;

  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1');
    const pair = [client, upstream];
    for (const socket of pair) {
      sockets.add(socket);
      const end = () => {
        for (const either of pair) either.destroy();
        sockets.delete(socket);
      };
      socket.on('error', end).on('close', end);
    }
    const split = createSplitter((message) => {
      const body = refusalOf === undefined ? {} : (bodyOf(message) ?? {});
      // The first field of a command is its name.
      const refusal = refusalOf?.(Object.keys(body)[0] ?? '', JSON.stringify(body));
      if (refusal === undefined) upstream.write(message);
      else {
        count += 1;
        client.write(answerTo(message, refusal));
      }
    });
    client.on('data', split);
    upstream.on('data', (bytes) => client.write(bytes));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });

  // A TCP server that listens has such an address.
  const { port } = server.address() as AddressInfo;
  url.port = String(port);
  return {
    port,
    url: url.href,
    refuse(next) {
      refusalOf = next;
    },
    refused: () => count,
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
