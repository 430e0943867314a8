import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

import type { JsonText } from './sse.ts';

/**
 * Closes the connection of a client that reads nothing for `drainMs`. Call it after the last text of an answer. A
 * client that reads slowly has all the time it needs, because each read restarts the limit.
 */
export function dropUnread(res: ServerResponse, drainMs: number): void {
  // The operating system has already taken everything, as for nearly every answer.
  if (res.socket?.writableLength === 0) return;
  res.setTimeout(drainMs, () => res.destroy());
}

/** False: the connection has closed. A client that takes longer than `drainMs` is dropped. */
function untilDrained(res: ServerResponse, drainMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const dropping = setTimeout(() => res.destroy(), drainMs);
    const settle = () => {
      clearTimeout(dropping);
      res.off('drain', settle).off('close', settle);
      resolve(!res.destroyed);
    };
    res.once('drain', settle).once('close', settle);
    if (res.destroyed) settle();
  });
}

/** Writes no faster than the client reads. False: it has left, or reads nothing. */
export async function writeJson(res: ServerResponse, json: JsonText, drainMs: number): Promise<boolean> {
  for (const piece of typeof json === 'string' ? [json] : json) {
    if (res.destroyed || (!res.write(piece) && !(await untilDrained(res, drainMs)))) return false;
    await setImmediate();
  }
  return true;
}

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' };

/** Answers 200. A long JSON text has no Content-Length, and is not made for a request for the head alone. */
export async function sendJson(res: ServerResponse, json: JsonText, drainMs: number): Promise<void> {
  if (typeof json === 'string') {
    res.writeHead(200, { ...JSON_TYPE, 'Content-Length': Buffer.byteLength(json) });
    res.end(json);
  } else {
    res.writeHead(200, JSON_TYPE);
    if (res.req.method !== 'HEAD' && !(await writeJson(res, json, drainMs))) return;
    res.end();
  }
  dropUnread(res, drainMs);
}

/**
 * A client that never read made Node queue 91 MB in 3 s: once its socket is full, `onBlocked` must stop further writes
 * until `onDrained`. A client that takes longer than `drainMs` is dropped.
 */
export function createPacedWriter(
  res: ServerResponse,
  drainMs: number,
  { onBlocked, onDrained }: { onBlocked: () => void; onDrained: () => void },
) {
  let dropping: NodeJS.Timeout | undefined;
  let wasBlocked = false;
  return {
    write(text: string): void {
      if (res.write(text) || dropping !== undefined) return;
      wasBlocked = true;
      onBlocked();
      dropping = setTimeout(() => res.destroy(), drainMs);
      res.once('drain', () => {
        clearTimeout(dropping);
        dropping = undefined;
        onDrained();
      });
    },
    /** Writes the last text. A client that does not read it also loses its connection after `drainMs`. */
    end(text: string): void {
      clearTimeout(dropping);
      res.end(text);
      dropUnread(res, drainMs);
    },
    /** True: the client still has to read what was written. */
    isBlocked: (): boolean => dropping !== undefined,
    /** True: the client has been too slow at some time since the last call. */
    wasBlocked(): boolean {
      const was = wasBlocked;
      wasBlocked = dropping !== undefined;
      return was;
    },
    /** Stops the timer of a response that has ended. */
    close(): void {
      clearTimeout(dropping);
    },
  };
}
