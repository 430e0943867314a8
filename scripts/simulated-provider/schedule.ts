import type { ServerResponse } from 'node:http';
import type { Settings } from './settings.ts';

/** Anything due within this time counts as due, because timers use whole milliseconds. */
const EARLY_MS = 1;

/** A reply's only timer. Each delta has its own time, counted from the start, so a late timer delays no other delta. */
export interface Schedule {
  /** False if the delta is due; otherwise calls `act` when it is. */
  waits(deltaIndex: number, act: () => void): boolean;
  after(delayMs: number, act: () => void): void;
}

/** Ends when the caller has left. */
export function createSchedule(
  { firstTokenMs, chunkMs }: Pick<Settings, 'firstTokenMs' | 'chunkMs'>,
  res: ServerResponse,
): Schedule {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  res.once('close', () => {
    clearTimeout(timer);
  });
  return {
    waits(deltaIndex, act) {
      if (firstTokenMs === 0 && chunkMs === 0) return false;
      const waitMs = startedAt + firstTokenMs + deltaIndex * chunkMs - performance.now();
      if (waitMs < EARLY_MS) return false;
      timer = setTimeout(act, waitMs);
      return true;
    },
    after(delayMs, act) {
      timer = setTimeout(act, delayMs);
    },
  };
}
