import type { Worker } from 'bullmq';

import { isOutOfMemory } from '../../shared/infra/redis/memory-watch.ts';
import { isRefusal } from '../../shared/infra/redis/refused-calls.ts';
import type { MongoPath } from '../mongo-path.ts';

const REST_MS = 1_000;
const NEVER_CUT_OFF = { isCutOff: () => false, onCutOff: () => undefined };

/**
 * Pauses a worker for a second when Redis is too full to hand out a job, or takes no writes. Otherwise BullMQ would
 * retry some hundred times per second and report each failure. So it does while this process is cut off from MongoDB, and
 * others take the jobs, but for one that BullMQ waits for at that moment. Running jobs continue meanwhile.
 */
export function restWhenUnable(worker: Worker, path: Pick<MongoPath, 'isCutOff' | 'onCutOff'> = NEVER_CUT_OFF): void {
  let timer: NodeJS.Timeout | undefined;

  function restOn(): void {
    timer = setTimeout(() => {
      if (path.isCutOff() && worker.closing === undefined) {
        restOn();
        return;
      }
      timer = undefined;
      // A failure is reported as an error of the worker.
      if (worker.closing === undefined) void worker.resume();
    }, REST_MS);
    timer.unref();
  }

  async function rest(): Promise<void> {
    if (timer !== undefined || worker.isPaused()) return;
    restOn();
    await worker.pause(true);
  }

  worker.on('error', (error) => {
    if (isOutOfMemory(error) || isRefusal(error)) void rest();
  });
  path.onCutOff(() => void rest());
}
