import type { StreamEntry } from '../../../shared/contracts/events.ts';

/** The whole text of a stored stream. */
export function textOfEntries(entries: readonly StreamEntry[]): string {
  // encodeEntry writes JSON strings.
  return entries.flatMap(({ deltas }) => deltas.map((delta) => JSON.parse(delta) as string)).join('');
}
