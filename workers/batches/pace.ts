import { performance } from 'node:perf_hooks';

export interface Paced {
  /** How many jobs run at once. */
  concurrency: number;
}

export interface Pace {
  add(lane: Paced): void;
  stop(): void;
}

export interface PaceOptions {
  /** Over all lanes. */
  max: number;
  /** How busy the process was since the last call, from 0 to 1. */
  busy?: () => number;
}

const LOOK_MS = 100;
/** Above it the lanes give places back, below the lower one they take more; between them they keep what they have. */
const BUSY_MAX = 0.6;
const BUSY_MIN = 0.45;
/** Quick to yield, slow to come back, as in TCP. */
const LESS = 0.7;

function createMeter(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}

/**
 * How many lines of batches a worker runs at once: as many as it is allowed to while its event loop has time to spare,
 * fewer while other requests need it. A lane always has one place.
 */
export function nextPlaces(places: number, busy: number, max: number): number {
  if (busy > BUSY_MAX) return Math.max(1, Math.floor(places * LESS));
  return busy < BUSY_MIN ? Math.min(max, places + 1) : places;
}

/** Sets the places of batch lanes by how busy this process is. */
export function createPace({ max, busy = createMeter() }: PaceOptions): Pace {
  const lanes: Paced[] = [];
  // BullMQ looks for room when a job ends: a lane that began with one place would wait for its first job.
  let places = max;
  const timer = setInterval(() => {
    places = nextPlaces(places, busy(), max);
    for (const lane of lanes) lane.concurrency = Math.max(1, Math.floor(places / lanes.length));
  }, LOOK_MS);
  timer.unref();
  return {
    add: (lane) => {
      lanes.push(lane);
    },
    stop: () => {
      clearInterval(timer);
    },
  };
}
