import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import { startServer } from '../embedded/server-process.ts';
import type { Supervisor } from '../start/supervisor.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
/** Type stripping is experimental by name in the oldest Node.js that can run this. */
const QUIET = '--disable-warning=ExperimentalWarning';
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;
/** The shell is replaced by Node.js, so that the pid is the one of the program. */
const LOG_TO_FILE = 'log=$1; shift; exec "$@" >"$log"';

export interface NodeProgram {
  /** As a person calls it: "The ingress". */
  name: string;
  /** From the root of the project. */
  file: string;
  /** Options of Node.js itself. */
  nodeArgs?: readonly string[];
  env: Environment;
  /** Takes its standard output; what it prints as an error is part of the message when it does not start. */
  logFile: string;
  ready: () => Promise<unknown>;
}

/** Starts one of the project's programs and waits until it can be used; `supervisor` ends it. Returns its pid. */
export async function startNodeProgram(supervisor: Supervisor, program: NodeProgram): Promise<number> {
  const { name, file, nodeArgs = [], env, logFile, ready } = program;
  const process_ = await startServer({
    name,
    command: '/bin/sh',
    args: ['-c', LOG_TO_FILE, 'sh', logFile, process.execPath, QUIET, ...nodeArgs, file],
    cwd: ROOT,
    env: { ...inherited(), ...env },
    ready,
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    signal: supervisor.signal,
  });
  supervisor.adopt(name, process_);
  return process_.pid;
}

/** Settings of the user's own service in the environment must not change what is measured. */
function inherited(): Environment {
  const { PATH, HOME, TMPDIR, LANG } = process.env;
  return { PATH, HOME, TMPDIR, LANG };
}
