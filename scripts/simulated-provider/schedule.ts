import type { Settings } from './settings.ts';

/** What is due within this time is due: timers count in whole milliseconds. */
const EARLY_MS = 1;

/** The one timer of a reply. Each delta has its own time, counted from the start, so a late timer delays no other. */
export interface Schedule {
  /** False where the delta is due; else `act` is called when it is. */
  waits(deltaIndex: number, act: () => void): boolean;
  after(delayMs: number, act: () => void): void;
  cancel(): void;
}

export function createSchedule({ firstTokenMs, chunkMs }: Pick<Settings, 'firstTokenMs' | 'chunkMs'>): Schedule {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
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
    cancel() {
      clearTimeout(timer);
    },
  };
}
