import { setTimeout as pause } from 'node:timers/promises';

/** Stops waiting for `call` after `limitMs` and rejects with a `Fault` of this sentence; the call itself goes on. */
export function withTimeLimit<Result>(
  call: Result | Promise<Result>,
  limitMs: number,
  sentence: string,
  Fault: new (message: string) => Error = Error,
): Promise<Result> {
  // Every call to a store passes through here: Promise.race would make four more promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Fault(sentence));
    }, limitMs);
    const settle = () => {
      clearTimeout(timer);
      resolve(call);
    };
    Promise.resolve(call).then(settle, settle);
  });
}

/** Processes read the time only here, so that tests can hand in their own clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

const POLL_MS = 50;

/** Asks every 50 ms until an answer is the last one or `forMs` have passed, and resolves with the latest answer. */
export async function pollUntil<T>(
  clock: Clock,
  forMs: number,
  ask: () => Promise<T>,
  isLast: (answer: T) => boolean,
): Promise<T> {
  const until = clock.now() + forMs;
  for (;;) {
    const answer = await ask();
    if (isLast(answer) || clock.now() > until) return answer;
    await pause(POLL_MS);
  }
}

/** Runs `task` repeatedly, each time `pauseMs` after the last run has ended. `stop` waits for a run in progress. */
export interface Repeating {
  stop(): Promise<void>;
}

/** `pauseMs` may depend on what the run returned. `onError` gets the error of a failed run; the next run still comes. */
export function repeat<T>(
  task: () => Promise<T>,
  pauseMs: (result: T | undefined) => number,
  onError: (error: unknown) => void,
): Repeating {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  async function run(): Promise<void> {
    let result: T | undefined;
    try {
      result = await task();
    } catch (error) {
      onError(error);
    }
    if (stopped) return;
    timer = setTimeout(start, pauseMs(result));
  }
  function start(): void {
    running = run();
  }
  start();

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
