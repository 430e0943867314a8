import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Tells pipelined answers that wait behind another one when their connection has ended. Node.js 24 does, 22 tells the first
 * of them only: who keeps a list of open answers would keep the others without end.
 */
export function endWaiting(server: Server): void {
  const waiting = new WeakMap<Duplex, Set<ServerResponse>>();

  function waitingOn(socket: Duplex): Set<ServerResponse> {
    const answers = waiting.get(socket) ?? new Set();
    if (waiting.has(socket)) return answers;
    waiting.set(socket, answers);
    socket.once('close', () => {
      for (const res of answers) {
        // Node.js itself tells one that has its turn, or has ended.
        if (res.socket !== null || res.writableFinished) continue;
        res.destroy();
        res.emit('close');
      }
    });
    return answers;
  }

  // Before the app, which may answer at once.
  server.prependListener('request', ({ socket }, res) => {
    // It has the connection already, unless another answer has it.
    if (res.socket !== null) return;
    const answers = waitingOn(socket);
    answers.add(res);
    res.once('close', () => answers.delete(res));
  });
}
