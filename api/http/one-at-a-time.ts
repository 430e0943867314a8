import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of a connection that may wait behind the one that runs. Clients that send ahead at all send a few. */
export const WAITING_MAX = 100;

/** A field of the socket, for the reason that `CONTEXT` of request-context.ts has. */
const TURNS = Symbol('turns');

interface Turns {
  runs: boolean;
  waiting: { req: IncomingMessage; res: ServerResponse }[];
}

/** The types of Node do not know the field. */
function turnsOf(socket: Socket & { [TURNS]?: Turns }): Turns {
  const known = socket[TURNS];
  if (known !== undefined) return known;
  const turns: Turns = { runs: false, waiting: [] };
  socket[TURNS] = turns;
  return turns;
}

/**
 * Runs the requests of one connection one after the other, as RFC 9112 section 9.3.2 asks for where they change things.
 * Node would run all that have come, and keep their answers until the client has read those before them: 3,000 requests
 * for a document, 100 KB that nobody paid for, made it hold 750 MB. What waits behind the last answer of a connection
 * does not run, so its client may send it again. A connection on which more than `WAITING_MAX` wait is cut.
 */
export function oneAtATime(listener: RequestListener): RequestListener {
  function run(turns: Turns, req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    turns.runs = true;
    res.once('close', () => {
      turns.runs = false;
      const next = turns.waiting.shift();
      if (next !== undefined && socket.writable) run(turns, next.req, next.res);
    });
    listener(req, res);
  }

  return (req, res) => {
    const turns = turnsOf(req.socket);
    if (!turns.runs) run(turns, req, res);
    else if (turns.waiting.length < WAITING_MAX) turns.waiting.push({ req, res });
    else {
      turns.waiting = [];
      req.socket.destroy();
    }
  };
}
