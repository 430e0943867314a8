/** How busy a worker's queue is, measured from when its jobs begin and end. */
export interface WorkMeter {
  /** How many requests run. */
  running(): number;
  /** A job has arrived, perhaps a canary. */
  note(): void;
  /** A request begins; returns its start time, to be passed to `end`. */
  begin(): number;
  end(startedAt: number): void;
  /** Milliseconds since a job arrived or a request ended; 0 while all `places` are taken. */
  quietMs(places: number): number;
  /** Milliseconds since the last request ended; 0 while one runs. */
  idleMs(): number;
  /** Average duration of the latest requests, or of the running ones so far, whichever is longer. */
  meanMs(): number;
}

/** How much the latest request weighs in the mean. */
const MEAN_WEIGHT = 0.05;

export function createWorkMeter(): WorkMeter {
  let lastWorkAt = performance.now();
  let lastRequestAt = -Infinity;
  let running = 0;
  let meanMs = 0;
  /** The sum of the start times of all running requests. */
  let beginnings = 0;

  return {
    running: () => running,
    note() {
      lastWorkAt = performance.now();
    },
    begin() {
      const startedAt = performance.now();
      running += 1;
      beginnings += startedAt;
      return startedAt;
    },
    end(startedAt) {
      running -= 1;
      beginnings -= startedAt;
      lastRequestAt = lastWorkAt = performance.now();
      const tookMs = lastRequestAt - startedAt;
      meanMs = meanMs === 0 ? tookMs : meanMs + (tookMs - meanMs) * MEAN_WEIGHT;
    },
    quietMs: (places) => (running >= places ? 0 : performance.now() - lastWorkAt),
    idleMs: () => (running > 0 ? 0 : performance.now() - lastRequestAt),
    meanMs: () => Math.max(meanMs, running === 0 ? 0 : performance.now() - beginnings / running),
  };
}
