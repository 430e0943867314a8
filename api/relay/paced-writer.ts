import type { ServerResponse } from 'node:http';

import { dropUnread } from './drop-unread.ts';

/** Writes to a client no faster than it reads. */
export interface PacedWriter {
  write(text: string): void;
  /** The last text; what the client leaves unread of it holds its connection no longer than any other. */
  end(text: string): void;
  /** The client has not taken what was written before. */
  isBlocked(): boolean;
  /** For a response that is over. */
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
  return {
    write(text) {
      if (res.write(text) || dropping !== undefined) return;
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
    close() {
      clearTimeout(dropping);
    },
  };
}
