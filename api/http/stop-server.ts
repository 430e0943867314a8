import type { Server, ServerResponse } from 'node:http';

import type { OpenAnswers } from './open-answers.ts';

export interface StopOptions {
  /** How long open requests may take to end; milliseconds. */
  graceMs: number;
  /** Called when the grace is over, just before the remaining connections are cut. */
  onGraceOver?: () => void;
}

/** How often the server looks for connections whose last answer has been sent. */
const IDLE_CHECK_MS = 50;
/** Time to send the last answers, which tell clients that the server is stopping. */
const LAST_WORDS_MS = 300;

function announceEndWith(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

/**
 * Makes every answer from now on announce that its connection ends. Otherwise a client with a kept-alive connection
 * would keep sending requests to a stopping server until it is cut, perhaps just as the connection is closed.
 */
function announceEnd(server: Server, answers: OpenAnswers): void {
  answers.forEach(announceEndWith);
  // Registered before the app's listener, which may answer at once.
  server.prependListener('request', (_req, res) => {
    announceEndWith(res);
  });
}

/**
 * `server.close()` alone waits forever for open streams (docs/architecture/facts.md section 4): they get the grace and
 * are then cut. Idle keep-alive connections are closed at once.
 */
async function closeServer(server: Server, { graceMs, onGraceOver }: StopOptions): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  const idle = setInterval(() => {
    server.closeIdleConnections();
  }, IDLE_CHECK_MS);
  const cut = setTimeout(() => {
    server.closeAllConnections();
  }, graceMs + LAST_WORDS_MS);
  const over = setTimeout(() => onGraceOver?.(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(over);
  clearTimeout(cut);
}

/** Stops a server. Resolves once no connection is left. */
export function stopServer(server: Server, answers: OpenAnswers, options: StopOptions): Promise<void> {
  announceEnd(server, answers);
  return closeServer(server, options);
}
