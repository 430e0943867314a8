import type { Worker } from 'bullmq';

import { isOutOfMemory } from '../../shared/infra/redis/memory-watch.ts';
import { isRefusal } from '../../shared/infra/redis/refused-calls.ts';

const REST_MS = 1_000;

/**
 * Pauses a worker for a second when Redis is too full to hand out a job, or takes no writes. Otherwise BullMQ would
 * retry some hundred times per second and report each failure. Running jobs continue meanwhile.
 */
export function restWhenFull(worker: Worker): void {
  let timer: NodeJS.Timeout | undefined;

  async function rest(): Promise<void> {
    await worker.pause(true);
    timer = setTimeout(() => {
      timer = undefined;
      // A failure is reported as an error of the worker.
      if (worker.closing === undefined) void worker.resume();
    }, REST_MS);
    timer.unref();
  }

  worker.on('error', (error) => {
    if (!(isOutOfMemory(error) || isRefusal(error)) || timer !== undefined || worker.isPaused()) return;
    void rest();
  });
}
