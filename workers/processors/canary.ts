import type { Queue } from 'bullmq';

import type { ChatJob } from '../../shared/contracts/jobs.ts';

/** Name of the jobs that a worker sends through its own queue. */
export const CANARY = 'canary';

export interface CanaryDeps {
  queue: Pick<Queue<ChatJob>, 'add' | 'isPaused'>;
  workerId: string;
  everyMs: number;
  /** The queue is paused by an operator: nothing passes, and nobody is stuck. */
  onPaused: () => void;
}

/**
 * Sends a job through the queue now and then: `isRunning()` is true even on a worker that is stuck. Returns what ends it.
 */
export function startCanary({ queue, workerId, everyMs, onPaused }: CanaryDeps): () => void {
  let sent = 0;
  let isSending = false;

  async function send(): Promise<void> {
    if (await queue.isPaused()) {
      onPaused();
      return;
    }
    sent += 1;
    await queue.add(
      CANARY,
      { tenantId: '' },
      { jobId: `canary-${workerId}-${sent}`, removeOnComplete: true, removeOnFail: true },
    );
  }

  const timer = setInterval(() => {
    // One that waits for Redis is sent once Redis is back: more of them would only add up.
    if (isSending) return;
    isSending = true;
    send()
      .catch(() => undefined)
      .finally(() => (isSending = false));
  }, everyMs);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}
