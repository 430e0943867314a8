import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The answers of a server that have not ended yet. */
export interface OpenAnswers {
  /** The open answers of one connection in request order: the first one has the connection, the others wait. */
  of(socket: Duplex): ReadonlySet<ServerResponse>;
  forEach(visit: (res: ServerResponse) => void): void;
  /** `listener` is called after each answer that has been sent, or has lost its connection. */
  onEnd(listener: (res: ServerResponse) => void): void;
  /** Of the connections without an open answer, the one whose last answer ended first. */
  longestIdle(): Duplex | undefined;
}

/** A field of the socket, because the garbage collector visits the entries of a WeakMap again and again. */
const ANSWERS = Symbol('answers');

/** Node's types do not know the field. */
type Connection = Duplex & { [ANSWERS]?: Set<ServerResponse> };

const NONE: ReadonlySet<ServerResponse> = new Set();

export function registerAnswers(server: Server): OpenAnswers {
  const connections = new Set<Set<ServerResponse>>();
  /** In the order in which they became idle. */
  const idle = new Set<Connection>();
  const listeners: ((res: ServerResponse) => void)[] = [];

  /** One function for all answers, so that no request creates a closure. */
  function end(this: ServerResponse): void {
    const { socket }: { socket: Connection } = this.req;
    const answers = socket[ANSWERS];
    if (answers?.delete(this) !== true) return;
    if (answers.size === 0 && !socket.destroyed) idle.add(socket);
    for (const listener of listeners) listener(this);
  }

  function register(socket: Connection): Set<ServerResponse> {
    const answers = new Set<ServerResponse>();
    socket[ANSWERS] = answers;
    connections.add(answers);
    socket.once('close', () => {
      connections.delete(answers);
      idle.delete(socket);
      // When a connection ends, Node.js 22 notifies only the first of the waiting answers.
      for (const res of answers) end.call(res);
    });
    return answers;
  }

  // Registered before the app's listener, which may ask for the answers.
  server.prependListener('request', ({ socket }: { socket: Connection }, res) => {
    (socket[ANSWERS] ?? register(socket)).add(res);
    idle.delete(socket);
    res.on('close', end);
  });

  return {
    of: (socket: Connection) => socket[ANSWERS] ?? NONE,
    forEach(visit) {
      for (const answers of connections) answers.forEach(visit);
    },
    onEnd(listener) {
      listeners.push(listener);
    },
    longestIdle() {
      const [socket] = idle;
      return socket;
    },
  };
}

/** Requests of a connection that may wait behind the running one. Clients that pipeline at all send only a few. */
export const WAITING_MAX = 100;

/** Waiting requests are held in memory. */
const LIMITS: RoomRules = { connectionBytesMax: 1024 * 1024, processBytesMax: 64 * 1024 * 1024 };

/** The most that Node.js buffers of an unread body: its buffer of 64 KiB, and what it reads at once. */
const UNREAD_BODY_BYTES = 128 * 1024;

export interface RoomRules {
  connectionBytesMax: number;
  /** For all connections of the server together. */
  processBytesMax: number;
}

/** The most memory that a request takes while nobody reads it. */
function bytesOf({ headers, rawHeaders, url = '' }: IncomingMessage): number {
  const isChunked = headers['transfer-encoding'] !== undefined;
  const body = isChunked ? Infinity : Number(headers['content-length'] ?? 0);
  return rawHeaders.reduce((bytes, { length }) => bytes + length, url.length + Math.min(body, UNREAD_BODY_BYTES));
}

/**
 * Runs the requests of a connection one after the other, as RFC 9112 section 9.3.2 demands for requests that change
 * something. Node would start them all and keep their answers until the client has read the earlier ones: 3,000
 * requests for a document, 100 KB that nobody paid for, made it hold 750 MB. Requests still waiting after a
 * connection's last answer never run, so the client may send them again. A connection with more than `WAITING_MAX` of
 * them, or without room, is cut: nobody knows yet who sent the bodies, so no other limit counts them.
 */
export function serializePipelined(
  listener: RequestListener,
  answers: OpenAnswers,
  room: RoomRules = LIMITS,
): RequestListener {
  const waiting = new Map<ServerResponse, number>();
  let allBytes = 0;

  function wait(res: ServerResponse): void {
    const { req } = res;
    // The parser finishes what it has read even if the connection was cut.
    if (req.socket.destroyed) return;
    const open = answers.of(req.socket);
    const bytes = bytesOf(req);
    let connectionBytes = bytes;
    for (const one of open) connectionBytes += waiting.get(one) ?? 0;
    const isFull =
      // Minus the running one.
      open.size - 1 > WAITING_MAX ||
      connectionBytes > room.connectionBytesMax ||
      allBytes + bytes > room.processBytesMax;
    if (isFull) req.socket.destroy();
    else {
      waiting.set(res, bytes);
      allBytes += bytes;
    }
  }

  /** True: the request was waiting. */
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
