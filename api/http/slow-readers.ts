import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How often the server looks whose connection is full. */
const LOOK_MS = 5_000;
/** A client that reads nothing for this long has gone, where the system has taken next to nothing for it. */
export const DRAIN_MS = 30_000;
/** What a client has to read within the drain time: 4 KiB a second. */
export const DRAIN_BYTES = 120 * 1024;
/**
 * The system tells of a client's reading when it has room for a third of its largest buffer again: in steps of up to 1.64 MB
 * with the usual 4 MiB of Linux, which are 14 times `DRAIN_BYTES`.
 */
export const DRAINS_MAX = 15;

/**
 * How long nothing may be heard of a client that has something to read, in milliseconds: `drainMs`, and as much for each
 * `DRAIN_BYTES` that it may have been given to read, in vain or not, `DRAINS_MAX` times in all. So whoever reads
 * `DRAIN_BYTES` in `drainMs` is seen to read in time.
 */
export function quietMs(socket: Pick<Socket, 'bytesWritten'> | null, drainMs: number): number {
  return Math.ceil(drainMs * Math.min(DRAINS_MAX, 1 + (socket?.bytesWritten ?? 0) / DRAIN_BYTES));
}

/**
 * Cuts clients that leave an answer, or the part of it that is there, unread for too long, see `quietMs`: Node would keep it,
 * and its connection, for as long as they like. Whoever waits for something to read has all the time it needs. Both times are
 * milliseconds; it may take `everyMs` longer. Returns what ends the looking.
 */
export function dropSlowReaders(
  server: Server,
  { drainMs = DRAIN_MS, everyMs = LOOK_MS }: { drainMs?: number; everyMs?: number } = {},
): () => void {
  const open = new Set<ServerResponse>();
  /** Connections with a time limit, and the answer that it was set for: Node.js takes the limit away behind that. */
  const limited = new WeakMap<Socket, ServerResponse>();
  server.on('request', (_req, res) => {
    open.add(res);
    res.once('close', () => open.delete(res));
  });

  function look(res: ServerResponse): void {
    const { socket } = res;
    // Behind an answer that is not over; its turn has not come.
    if (socket === null) return;
    if (socket.writableLength > 0) {
      if (limited.get(socket) === res) return;
      // A socket sees progress within a single large write, too.
      socket.setTimeout(quietMs(socket, drainMs));
      limited.set(socket, res);
    } else if (limited.delete(socket)) socket.setTimeout(0);
  }

  const looking = setInterval(() => {
    open.forEach(look);
  }, everyMs).unref();
  return () => {
    clearInterval(looking);
  };
}
