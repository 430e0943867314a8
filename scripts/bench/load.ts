import { fork } from 'node:child_process';
import { join } from 'node:path';

import { exitOf } from '../embedded/server-process.ts';
import type { Supervisor } from '../harness/supervisor.ts';

/** A message to the load generator. */
export interface LoadSpec {
  /** The whole URL to which every request is sent. */
  url: string;
  headers: Record<string, string>;
  /** Clients take them in turn and keep theirs, because an entity may have only one request at a time. */
  bodies: readonly string[];
  mode: 'complete' | 'stream';
  /** Each client has its own connection and sends its next request once it has read the last answer. */
  clients: number;
  seconds: number;
}

/** Its answer. */
export interface LoadResult {
  /** Correctly answered requests. */
  answered: number;
  perSecond: number;
  /** All other requests, by error. */
  errors: Record<string, number>;
  latencyMs: { p50: number; p99: number };
  /** Only for streams. */
  firstTextMs: { p50: number; p99: number } | undefined;
}

export type LoadGenerator = ReturnType<typeof startLoadGenerator>;

/** Starts the load generator, which ends with `supervisor`, and in any case with this process. */
export function startLoadGenerator(supervisor: Supervisor) {
  // In its own process group, a Ctrl-C reaches only this process, which then stops everything in order.
  const child = fork(join(import.meta.dirname, 'load-generator.ts'), { detached: true });
  const exited = exitOf(child);
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
    run: (spec: LoadSpec) =>
      new Promise<LoadResult>((resolve, reject) => {
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
