import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { OpenAnswers } from './open-answers.ts';

/** How often the server checks which connections are full. */
const LOOK_MS = 5_000;
/** A client that reads nothing for this long counts as gone (docs/architecture/facts.md section 4). */
const DRAIN_MS = 30_000;

/**
 * Cuts clients that leave an answer, or the part of it that is there, unread for `drainMs`: Node would keep the answer
 * and its connection for as long as they like. A client that waits for something to read has all the time it needs, and
 * so has one that reads: on loopback, 20 kB per second were too few, because the system reports a client's reading in
 * large steps, and 60 kB were enough. Both times are milliseconds; cutting may take `everyMs` longer. Returns a
 * function that ends the checks.
 */
export function dropSlowReaders(
  answers: OpenAnswers,
  { drainMs = DRAIN_MS, everyMs = LOOK_MS }: { drainMs?: number; everyMs?: number } = {},
): () => void {
  /** Connections with a time limit, and the answer it was set for: Node.js removes the limit after that answer. */
  const limited = new WeakMap<Socket, ServerResponse>();

  function look(res: ServerResponse): void {
    const { socket } = res;
    // This answer waits for an earlier one on its connection.
    if (socket === null) return;
    if (socket.writableLength > 0) {
      if (limited.get(socket) === res) return;
      // A socket also notices progress within a single large write.
      socket.setTimeout(drainMs);
      limited.set(socket, res);
    } else if (limited.delete(socket)) socket.setTimeout(0);
  }

  const looking = setInterval(() => {
    answers.forEach(look);
  }, everyMs).unref();
  return () => {
    clearInterval(looking);
  };
}
