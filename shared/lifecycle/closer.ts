/** Collects what was opened and closes it in reverse order, once, going on past a step that fails or hangs. */
export interface Closer {
  /** `limitMs`: how long the step may take, 2 s where it is not said: a store that is away must not hold up the end. */
  defer(name: string, close: () => unknown, options?: { limitMs?: number }): void;
  close(): Promise<void>;
}

const LIMIT_MS = 2_000;

async function inTime(result: unknown, limitMs: number): Promise<void> {
  if (limitMs === Infinity) {
    await result;
    return;
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`It took longer than ${limitMs} ms.`));
    }, limitMs);
  });
  try {
    await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function createCloser(onFailure: (name: string, error: unknown) => void): Closer {
  const steps: { name: string; close: () => unknown; limitMs: number }[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      try {
        await inTime(step.close(), step.limitMs);
      } catch (error) {
        onFailure(step.name, error);
      }
    }
  }

  return {
    defer: (name, close, { limitMs = LIMIT_MS } = {}) => {
      steps.push({ name, close, limitMs });
    },
    close: () => (closing ??= closeAll()),
  };
}
