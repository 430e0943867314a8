import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

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

/** A field of the socket, as the garbage collector visits entries of a WeakMap again and again. */
const TURNS = Symbol('turns');

interface Waiting {
  req: IncomingMessage;
  res: ServerResponse;
  bytes: number;
}

interface Turns {
  runs: boolean;
  waiting: Waiting[];
  /** What those that wait may take. */
  bytes: number;
}

/** The types of Node do not know the field. */
function turnsOf(socket: Socket & { [TURNS]?: Turns }, onNew: (turns: Turns) => void): Turns {
  const known = socket[TURNS];
  if (known !== undefined) return known;
  const turns: Turns = { runs: false, waiting: [], bytes: 0 };
  socket[TURNS] = turns;
  onNew(turns);
  return turns;
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
export function oneAtATime(listener: RequestListener, room: RoomRules = ROOM): RequestListener {
  let allBytes = 0;

  function take(turns: Turns, bytes: number): void {
    turns.bytes += bytes;
    allBytes += bytes;
  }

  function run(turns: Turns, { req, res }: Pick<Waiting, 'req' | 'res'>): void {
    const { socket } = req;
    turns.runs = true;
    res.once('close', () => {
      turns.runs = false;
      const next = turns.waiting.shift();
      if (next === undefined || !socket.writable) return;
      take(turns, -next.bytes);
      run(turns, next);
    });
    listener(req, res);
  }

  function wait(turns: Turns, req: IncomingMessage, res: ServerResponse): void {
    const bytes = bytesOf(req);
    const isFull =
      turns.waiting.length >= WAITING_MAX ||
      turns.bytes + bytes > room.connectionBytesMax ||
      allBytes + bytes > room.processBytesMax;
    if (isFull) {
      turns.waiting = [];
      req.socket.destroy();
    } else {
      take(turns, bytes);
      turns.waiting.push({ req, res, bytes });
    }
  }

  return (req, res) => {
    const { socket } = req;
    const turns = turnsOf(socket, (opened) => {
      socket.once('close', () => {
        take(opened, -opened.bytes);
      });
    });
    if (turns.runs) wait(turns, req, res);
    else run(turns, { req, res });
  };
}
