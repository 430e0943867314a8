/** Runs `task` again and again, each time `pauseMs` after the last run has ended. `stop` waits for a run in progress. */
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
