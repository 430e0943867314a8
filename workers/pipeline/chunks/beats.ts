/** Moments that several streams of a worker share, so that the worker serves all of them in one go. */
export interface Beats {
  /** Calls back at the next beat; returns a function that cancels it. */
  next(act: () => void): () => void;
}

/** A beat due in less than a quarter of the interval is skipped: a timer that fires early would hit it twice. */
const NEAR = 4;

/** `offsetMs`: how much earlier these beats come than beats without an offset; less than `everyMs`. */
export function createBeats(everyMs: number, offsetMs = 0): Beats {
  let waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    timer = undefined;
    const acts = waiting;
    waiting = new Set();
    for (const act of acts) act();
  }

  function untilNext(): number {
    const ms = everyMs - ((performance.now() + offsetMs) % everyMs);
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
