import { fork } from 'node:child_process';
import { join } from 'node:path';

import type { Supervisor } from '../harness/supervisor.ts';
import type { LoadResult, LoadSpec } from './load-spec.ts';

export interface LoadGenerator {
  pid: number;
  run(spec: LoadSpec): Promise<LoadResult>;
}

/** Starts the load generator, which ends with `supervisor`, and in any case with this process. */
export function startLoadGenerator(supervisor: Supervisor): LoadGenerator {
  // In its own process group, a Ctrl-C reaches only this process, which then stops everything in order.
  const child = fork(join(import.meta.dirname, 'load-generator.ts'), { detached: true });
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('exit', (code, signal) => {
      resolve(signal ?? `exit code ${code ?? 'unknown'}`);
    });
  });
  const kill = () => child.kill('SIGKILL');
  supervisor.adopt('The load generator', {
    exited,
    kill,
    stop: async () => {
      kill();
      await exited;
    },
  });
  return {
    pid: child.pid ?? 0,
    run: (spec) =>
      new Promise((resolve, reject) => {
        const { signal } = supervisor;
        const stop = () => {
          reject(new Error('The run was stopped.'));
        };
        signal.throwIfAborted();
        signal.addEventListener('abort', stop);
        child.once('message', (result) => {
          signal.removeEventListener('abort', stop);
          // Sent by load-generator.ts, which answers each spec with one result.
          resolve(result as LoadResult);
        });
        child.send(spec);
      }),
  };
}
