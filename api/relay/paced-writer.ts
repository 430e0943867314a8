import type { ServerResponse } from 'node:http';

/**
 * Closes the connection of a client that reads nothing for `drainMs` (docs/architecture/facts.md section 4). Call it after
 * the last text of an answer. A client that reads slowly has all the time it needs, as the limit restarts with each read.
 */
export function dropUnread(res: ServerResponse, drainMs: number): void {
  // The operating system has taken everything, as with nearly every answer.
  if (res.socket?.writableLength === 0) return;
  res.setTimeout(drainMs, () => res.destroy());
}

/**
 * Resolves when the client has taken what was written; false: its connection is over. A client that takes longer than
 * `drainMs` is dropped (docs/architecture/facts.md section 4).
 */
export function untilDrained(res: ServerResponse, drainMs: number): Promise<boolean> {
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

/** Writes to a client no faster than it reads. */
export interface PacedWriter {
  write(text: string): void;
  /** Writes the last text. A client that does not read it loses its connection after `drainMs`, too. */
  end(text: string): void;
  /** Whether the client has yet to read what was written. */
  isBlocked(): boolean;
  /** Whether the client was too slow at some time since this was last asked. */
  wasBlocked(): boolean;
  /** Stops the timer of a response that is over. */
  close(): void;
}

/**
 * A client that never read made Node queue 91 MB in 3 s (docs/architecture/facts.md section 4): once its socket is
 * full, `onBlocked` must stop what comes next until `onDrained`. A client that takes longer than `drainMs` is dropped.
 */
export function createPacedWriter(
  res: ServerResponse,
  drainMs: number,
  { onBlocked, onDrained }: { onBlocked: () => void; onDrained: () => void },
): PacedWriter {
  let dropping: NodeJS.Timeout | undefined;
  let wasBlocked = false;
  return {
    write(text) {
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
    end(text) {
      clearTimeout(dropping);
      res.end(text);
      dropUnread(res, drainMs);
    },
    isBlocked: () => dropping !== undefined,
    wasBlocked() {
      const was = wasBlocked;
      wasBlocked = dropping !== undefined;
      return was;
    },
    close() {
      clearTimeout(dropping);
    },
  };
}
