import type { OpenAnswers } from './open-answers.ts';
import { LINGER_MS } from './refuse-malformed.ts';

/** How long a client may keep sending a body that nobody reads, because its request has been answered. */
const UNREAD_MS = 5_000;

/**
 * Closes connections of requests that were answered before their body had arrived. Bytes that arrive within `unreadMs`
 * are discarded, and a client that has sent everything by then keeps its connection.
 */
export function closeUnread(answers: OpenAnswers, unreadMs = UNREAD_MS): void {
  answers.onEnd(({ req, writableFinished }) => {
    if (req.complete || !writableFinished) return;
    const { socket } = req;
    const closing = setTimeout(() => {
      if (req.complete || socket.destroyed) return;
      socket.end();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    }, unreadMs).unref();
    req.once('close', () => {
      clearTimeout(closing);
    });
  });
}
