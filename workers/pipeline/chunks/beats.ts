/** Moments that all streams of a worker have in common, so that what each of them has to do is done in one go. */
export interface Beats {
  /** Calls back at the next one; returns what takes that back. */
  next(act: () => void): () => void;
}

/** Part of the time between two: nobody need hurry for one that is nearer, which a timer may bring too early besides. */
const NEAR = 4;

export function createBeats(everyMs: number): Beats {
  let waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    timer = undefined;
    const acts = waiting;
    waiting = new Set();
    for (const act of acts) act();
  }

  function untilNext(): number {
    const ms = everyMs - (performance.now() % everyMs);
    return ms < everyMs / NEAR ? ms + everyMs : ms;
  }

  return {
    next(act) {
      const acts = waiting;
      acts.add(act);
      timer ??= setTimeout(beat, untilNext());
      return () => {
        acts.delete(act);
        if (waiting.size > 0) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}
