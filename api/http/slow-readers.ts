import type { Server, ServerResponse } from 'node:http';

/** How often the server looks whose connection is full. */
const LOOK_MS = 5_000;
/** A client that reads nothing for this long has gone (docs/architecture/facts.md section 4). */
const DRAIN_MS = 30_000;

/**
 * Cuts clients that leave an answer, or the part of it that is there, unread for `drainMs`: Node would keep it, and its
 * connection, for as long as they like. Whoever reads, however slowly, has all the time it needs, as has who waits for
 * something to read. Both times are milliseconds; it may take `everyMs` longer. Returns what ends the looking.
 */
export function dropSlowReaders(
  server: Server,
  { drainMs = DRAIN_MS, everyMs = LOOK_MS }: { drainMs?: number; everyMs?: number } = {},
): () => void {
  const open = new Set<ServerResponse>();
  const limited = new WeakSet<ServerResponse>();
  server.on('request', (_req, res) => {
    open.add(res);
    res.once('close', () => open.delete(res));
  });

  function look(res: ServerResponse): void {
    const { socket } = res;
    // Behind an answer that is not over; its turn has not come.
    if (socket === null) return;
    const isFull = socket.writableLength > 0;
    if (isFull === limited.has(res)) return;
    // A socket sees progress within a single large write, too.
    socket.setTimeout(isFull ? drainMs : 0);
    if (isFull) limited.add(res);
    else limited.delete(res);
  }

  const looking = setInterval(() => {
    open.forEach(look);
  }, everyMs).unref();
  return () => {
    clearInterval(looking);
  };
}
