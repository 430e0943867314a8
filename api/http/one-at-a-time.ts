import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import type { OpenAnswers } from './open-answers.ts';

/** Requests of a connection that may wait behind the one that runs. Clients that send ahead at all send a few. */
export const WAITING_MAX = 100;

/** What waits is in memory. */
const ROOM: RoomRules = { connectionBytesMax: 1024 * 1024, processBytesMax: 64 * 1024 * 1024 };

/** The most that Node.js takes of a body that nobody reads: its buffer of 64 KiB, and what it reads at once. */
const UNREAD_BODY_BYTES = 128 * 1024;

/** How many bytes of heads and bodies may wait. */
export interface RoomRules {
  connectionBytesMax: number;
  /** Of all connections of the server together. */
  processBytesMax: number;
}

/** The most that a request takes while nobody reads it. */
function bytesOf({ headers, rawHeaders, url = '' }: IncomingMessage): number {
  const isChunked = headers['transfer-encoding'] !== undefined;
  const body = isChunked ? Infinity : Number(headers['content-length'] ?? 0);
  return rawHeaders.reduce((bytes, { length }) => bytes + length, url.length + Math.min(body, UNREAD_BODY_BYTES));
}

/**
 * Runs the requests of one connection one after the other, as RFC 9112 section 9.3.2 asks for where they change things.
 * Node would run all that have come, and keep their answers until the client has read those before them: 3,000 requests
 * for a document, 100 KB that nobody paid for, made it hold 750 MB. What waits behind the last answer of a connection
 * does not run, so its client may send it again. A connection on which more than `WAITING_MAX` wait, or for which there is
 * no room, is cut: nobody knows yet whose bodies they are, so no other limit counts them.
 */
export function oneAtATime(listener: RequestListener, answers: OpenAnswers, room: RoomRules = ROOM): RequestListener {
  /** What each request that waits takes. */
  const waiting = new Map<ServerResponse, number>();
  let allBytes = 0;

  function wait(res: ServerResponse): void {
    const { req } = res;
    // The parser goes through what it has read, also of a connection that was cut.
    if (req.socket.destroyed) return;
    const open = answers.of(req.socket);
    const bytes = bytesOf(req);
    let connectionBytes = bytes;
    for (const one of open) connectionBytes += waiting.get(one) ?? 0;
    const isFull =
      // Beside the one that runs.
      open.size - 1 > WAITING_MAX ||
      connectionBytes > room.connectionBytesMax ||
      allBytes + bytes > room.processBytesMax;
    if (isFull) req.socket.destroy();
    else {
      waiting.set(res, bytes);
      allBytes += bytes;
    }
  }

  /** Whether it waited. */
  function waitNoMore(res: ServerResponse): boolean {
    allBytes -= waiting.get(res) ?? 0;
    return waiting.delete(res);
  }

  answers.onEnd((res) => {
    waitNoMore(res);
    const { socket } = res.req;
    const [next] = answers.of(socket);
    if (next !== undefined && socket.writable && waitNoMore(next)) listener(next.req, next);
  });

  return (req, res) => {
    if (answers.of(req.socket).size === 1) listener(req, res);
    else wait(res);
  };
}
