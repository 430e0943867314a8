/** Collects what was opened and closes it in reverse order, once, going on past a step that fails. */
export interface Closer {
  defer(name: string, close: () => unknown): void;
  close(): Promise<void>;
}

export function createCloser(onFailure: (name: string, error: unknown) => void): Closer {
  const steps: { name: string; close: () => unknown }[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      try {
        await step.close();
      } catch (error) {
        onFailure(step.name, error);
      }
    }
  }

  return {
    defer: (name, close) => {
      steps.push({ name, close });
    },
    close: () => (closing ??= closeAll()),
  };
}
