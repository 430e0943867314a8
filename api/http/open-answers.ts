import type { Server, ServerResponse } from 'node:http';
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
