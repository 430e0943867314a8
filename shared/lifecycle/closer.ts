import { withTimeLimit } from './clock.ts';

/** Closes once, in reverse order, what was opened; a step that fails or hangs does not stop the rest. */
export type Closer = ReturnType<typeof createCloser>;

const LIMIT_MS = 2_000;
const ALL_MS = 8_000;
/** A step gets this much when the others have used up the time: a store that answers closes sooner. */
const LEAST_MS = 100;

export function createCloser(onFailure: (name: string, error: unknown) => void) {
  const steps: { name: string; close: () => unknown; limitMs: number }[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    let leftMs = ALL_MS;
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      const isLimited = step.limitMs !== Infinity;
      const startedAt = performance.now();
      try {
        const limitMs = Math.max(LEAST_MS, Math.min(step.limitMs, leftMs));
        const closed = step.close();
        await (isLimited ? withTimeLimit(closed, limitMs, `It took longer than ${limitMs} ms.`) : closed);
      } catch (error) {
        onFailure(step.name, error);
      }
      if (isLimited) leftMs -= performance.now() - startedAt;
    }
  }

  return {
    /**
     * `limitMs`: how long the step may take, by default 2 s: an unavailable store must not hold up the end.
     * All steps with a limit share 8 s; Infinity is for a step that limits itself.
     */
    defer: (name: string, close: () => unknown, { limitMs = LIMIT_MS }: { limitMs?: number } = {}): void => {
      steps.push({ name, close, limitMs });
    },
    close: (): Promise<void> => (closing ??= closeAll()),
  };
}
