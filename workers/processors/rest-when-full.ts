import type { Worker } from 'bullmq';

import { isOutOfMemory } from '../../shared/infra/redis/memory-watch.ts';

const REST_MS = 1_000;

/**
 * Lets a worker of a queue rest for a second when Redis is too full to hand a job out. BullMQ tries again at once, some
 * hundred times a second, and reports each failure. What the worker runs goes on meanwhile.
 */
export function restWhenFull(worker: Worker): void {
  let timer: NodeJS.Timeout | undefined;

  async function rest(): Promise<void> {
    await worker.pause(true);
    timer = setTimeout(() => {
      timer = undefined;
      // It reports what fails as an error of the worker.
      if (worker.closing === undefined) void worker.resume();
    }, REST_MS);
    timer.unref();
  }

  worker.on('error', (error) => {
    if (!isOutOfMemory(error) || timer !== undefined || worker.isPaused()) return;
    void rest();
  });
}
