import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createSupervisor } from './supervisor.ts';
import type { End, Supervisor } from './supervisor.ts';

/** The exit code is that which shells report for a program stopped by Ctrl-C. */
const INTERRUPTION: End = { exitCode: 130, sentence: 'Interrupted: everything is stopped.' };

export interface SupervisedTask {
  supervisor: Supervisor;
  /** Removed when everything has ended. */
  dataDir: string;
}

/**
 * Runs a task that starts processes, and stops all of them: when it is done, when it fails, on Ctrl-C (a second one
 * forces it), and when one of them ends by itself. Returns the exit code.
 */
export async function runSupervised(
  name: string,
  print: (line: string) => void,
  task: (context: SupervisedTask) => Promise<number>,
): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), `parley-${name}-`));
  const supervisor = createSupervisor(print);
  supervisor.defer('the data folder', () => rm(dataDir, { recursive: true, force: true }));
  endOnSignals(supervisor, () => INTERRUPTION);
  let exitCode: number;
  try {
    exitCode = await task({ supervisor, dataDir });
    supervisor.signal.throwIfAborted();
  } catch (error) {
    exitCode = await explain(supervisor, error);
  }
  await supervisor.close();
  return exitCode;
}

/** The first signal asks for the end, a second one enforces it. */
export function endOnSignals(supervisor: Supervisor, onFirst: () => End, onSecond: () => void = () => undefined): void {
  const onSignal = () => {
    if (supervisor.signal.aborted) {
      onSecond();
      supervisor.killAll();
      process.exit(INTERRUPTION.exitCode);
    }
    supervisor.requestEnd(onFirst());
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}

/** Says why everything ends, without a stack trace; an error after the stop was requested is its consequence. */
export async function explain(supervisor: Supervisor, error: unknown): Promise<number> {
  const { exitCode, sentence } = supervisor.signal.aborted
    ? await supervisor.ended
    : { exitCode: 1, sentence: error instanceof Error ? error.message : String(error) };
  if (sentence !== undefined) process.stderr.write(`\n${sentence}\n`);
  return exitCode;
}
