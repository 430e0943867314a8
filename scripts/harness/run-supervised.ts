import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createSupervisor } from './supervisor.ts';
import type { Supervisor } from './supervisor.ts';

/** The exit code that shells report for a program stopped by Ctrl-C. */
const INTERRUPTED = 130;

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
  endOnSignals(supervisor);
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

function endOnSignals(supervisor: Supervisor): void {
  const onSignal = () => {
    if (supervisor.signal.aborted) {
      supervisor.killAll();
      process.exit(INTERRUPTED);
    }
    supervisor.requestEnd({ exitCode: INTERRUPTED, sentence: 'Interrupted: everything is stopped.' });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}

/** An error after the stop was requested is a consequence of the stop. */
async function explain(supervisor: Supervisor, error: unknown): Promise<number> {
  const { exitCode, sentence } = supervisor.signal.aborted
    ? await supervisor.ended
    : { exitCode: 1, sentence: error instanceof Error ? error.message : String(error) };
  if (sentence !== undefined) process.stderr.write(`\n${sentence}\n`);
  return exitCode;
}
