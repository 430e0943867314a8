import { spawn } from 'node:child_process';

import type { Supervisor } from '../harness/supervisor.ts';

/** Starts a program that ends with the supervisor. */
export function startProgram(supervisor: Supervisor, name: string, program: string, args: readonly string[]): void {
  const child = spawn(program, args, { stdio: 'ignore' });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => {
      resolve();
    });
  });
  ended.catch((error: unknown) => {
    const sentence = `${name} could not be started: ${error instanceof Error ? error.message : String(error)}`;
    supervisor.requestEnd({ exitCode: 1, sentence });
  });
  supervisor.defer(name, async () => {
    child.kill();
    await ended.catch(() => undefined);
  });
}
