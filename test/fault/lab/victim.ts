import { join } from 'node:path';

import type { Environment } from '../../../scripts/embedded/find-program.ts';
import type { ServerProcess } from '../../../scripts/embedded/server-process.ts';
import { startProgram } from '../../../scripts/harness/program.ts';
import type { ProcessExit } from '../checker/evidence.ts';

/** An inspector is opened only by SIGUSR1 (live-memory.ts), then on a free port. */
const NODE_ARGS = ['--inspect-port=0'];
/** More than the grace of any process here, so that one that outlasts it is seen to. */
const STOP_TIMEOUT_MS = 60_000;

export interface VictimOptions {
  /** Also that of its log; no two of an experiment have the same. */
  name: string;
  /** From the root of the project. */
  file: string;
  /** See Program. */
  root?: string;
  env: Environment;
  logDir: string;
  ready: () => Promise<unknown>;
  signal: AbortSignal;
}

/** A process that the experiment may do things to; whatever else happens to it is a fault. */
export interface Victim {
  name: string;
  pid: number;
  isRunning(): boolean;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM, as a deployment does; resolves with how it ended and how many milliseconds that took. */
  stop(): Promise<{ how: string; tookMs: number }>;
}

/** `exits` gets a line when the process ends, with what was planned by then. */
export function toVictim(name: string, server: ServerProcess, exits: ProcessExit[]): Victim {
  let planned: string | undefined;
  let isRunning = true;
  const exited = server.exited.then((how) => {
    isRunning = false;
    exits.push({ name, how, planned });
    return how;
  });
  const signal = (signal: NodeJS.Signals) => {
    if (isRunning) process.kill(server.pid, signal);
  };
  return {
    name,
    pid: server.pid,
    isRunning: () => isRunning,
    pause: () => {
      signal('SIGSTOP');
    },
    resume: () => {
      signal('SIGCONT');
    },
    async kill() {
      planned ??= 'SIGKILL';
      server.kill();
      await exited;
      // Ends its guard and gives its lock back.
      await server.stop();
    },
    async stop() {
      const startedAt = performance.now();
      planned ??= 'exit code 0';
      // A stopped process takes no SIGTERM.
      signal('SIGCONT');
      await server.stop();
      return { how: await exited, tookMs: performance.now() - startedAt };
    },
  };
}

/** Starts one of the project's programs as its npm script does, and waits until it can be used. */
export async function startVictim(options: VictimOptions, exits: ProcessExit[]): Promise<Victim> {
  const { logDir, env, ...program } = options;
  const server = await startProgram({
    ...program,
    nodeArgs: NODE_ARGS,
    env: { NODE_ENV: 'production', ...env },
    log: { files: join(logDir, program.name) },
    stopTimeoutMs: STOP_TIMEOUT_MS,
  });
  return toVictim(program.name, server, exits);
}

/** Those that run, oldest first. */
export const runningOf = <T extends Victim>(list: readonly T[]): T[] => list.filter((victim) => victim.isRunning());
