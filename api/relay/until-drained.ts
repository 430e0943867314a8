import type { ServerResponse } from 'node:http';

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
