import type { ServerProcess } from '../../../embedded/server-process.ts';
import type { Supervisor } from '../../../harness/supervisor.ts';
import type { Component } from '../system.ts';

export interface Restartable extends Component {
  stop(): Promise<void>;
}

/** A process that may die during the measurement: `supervisor` stops it at the end, and accepts its death before. */
export async function superviseRestartable(
  supervisor: Supervisor,
  name: string,
  start: () => Promise<ServerProcess>,
): Promise<Restartable> {
  let current = await start();
  supervisor.defer(name, () => current.stop());
  return {
    async kill() {
      current.kill();
      await current.exited;
      // Frees what was held for the process, such as its lock.
      await current.stop();
    },
    async start() {
      current = await start();
    },
    stop: () => current.stop(),
  };
}

/** Stops all, in this order. */
export async function stopAll(all: readonly Restartable[]): Promise<void> {
  for (const each of all) await each.stop();
}

/** A component whose processes all die, and are restarted, at the same time. */
export function together(all: readonly Restartable[]): Component {
  return {
    async kill() {
      await Promise.all(all.map((each) => each.kill()));
    },
    async start() {
      await Promise.all(all.map((each) => each.start()));
    },
  };
}
