import type { ServerResponse } from 'node:http';

/**
 * Ends the connection of a client that takes nothing for `drainMs` (docs/architecture/facts.md section 4); to be called
 * with the last text of an answer. A client that reads, however slowly, has all the time it needs: Node's limit counts
 * from the last progress.
 */
export function dropUnread(res: ServerResponse, drainMs: number): void {
  res.setTimeout(drainMs, () => res.destroy());
}
