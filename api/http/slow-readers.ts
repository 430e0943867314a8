import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { OpenAnswers } from './open-answers.ts';

/** How often the server looks whose connection is full. */
const LOOK_MS = 5_000;
/** A client that reads nothing for this long has gone (docs/architecture/facts.md section 4). */
const DRAIN_MS = 30_000;

/**
 * Cuts clients that leave an answer, or the part of it that is there, unread for `drainMs`: Node would keep it, and its
 * connection, for as long as they like. Whoever waits for something to read has all the time it needs, as has who reads: on
 * loopback 20 kB a second were too few, as the system tells of a client's reading in large steps, and 60 kB enough. Both
 * times are milliseconds; it may take `everyMs` longer. Returns what ends the looking.
 */
export function dropSlowReaders(
  answers: OpenAnswers,
  { drainMs = DRAIN_MS, everyMs = LOOK_MS }: { drainMs?: number; everyMs?: number } = {},
): () => void {
  /** Connections with a time limit, and the answer that it was set for: Node.js takes the limit away behind that. */
  const limited = new WeakMap<Socket, ServerResponse>();

  function look(res: ServerResponse): void {
    const { socket } = res;
    // Behind an answer that is not over; its turn has not come.
    if (socket === null) return;
    if (socket.writableLength > 0) {
      if (limited.get(socket) === res) return;
      // A socket sees progress within a single large write, too.
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
