import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import { startServer } from '../embedded/server-process.ts';
import type { ServerProcess } from '../embedded/server-process.ts';
import type { Supervisor } from './supervisor.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
/** Node.js options for every program here: the oldest supported version warns that type stripping is experimental. */
export const QUIET = '--disable-warning=ExperimentalWarning';
/**
 * Node.js options for ingress and worker. By default, the young generation grows to 105 MB; with this, to 32 MB, at no
 * cost in CPU time (docs/benchmarks/performance-log.md). Dockerfile and launch.mjs have the same options; a test compares them.
 */
export const SERVICE_OPTIONS = ['--max-semi-space-size=16'];
/**
 * Settings of the C library for both, in the same places. By default, each V8 thread keeps the memory it once needed
 * for compiling; a single arena for all threads that returns free memory at its end takes 20 MB less
 * (docs/benchmarks/performance-log.md).
 */
export const SERVICE_ENV: Environment = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;
/** Node.js replaces the shell, so that the pid is that of the program. */
const LOG_TO_FILE = 'log=$1; shift; exec "$@" >"$log"';
const LOG_TO_FILES = 'log=$1; shift; exec "$@" >"$log.log" 2>"$log.stderr.log"';

export interface Program {
  /** The name that people use: "The ingress". */
  name: string;
  /** Relative to the project's root, or absolute. */
  file: string;
  /** The root of another version of the project, with its packages. Default: this one. */
  root?: string;
  /** Options of Node.js itself. */
  nodeArgs?: readonly string[];
  /** Options of the program itself. */
  args?: readonly string[];
  env: Environment;
  /**
   * `file` receives the standard output; if the program does not start, its error output is part of the error message.
   * `files` receives both, as `….log` and `….stderr.log`.
   */
  log: { file: string } | { files: string };
  ready: () => Promise<unknown>;
  stopTimeoutMs?: number;
  signal: AbortSignal;
}

/** Starts one of the project's programs like its npm script does, and waits until it can be used. */
export function startProgram(program: Program): Promise<ServerProcess> {
  const { file, root = ROOT, nodeArgs = [], args = [], env, log, ...rest } = program;
  const [script, path] = 'file' in log ? [LOG_TO_FILE, log.file] : [LOG_TO_FILES, log.files];
  return startServer({
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    ...rest,
    command: '/bin/sh',
    args: ['-c', script, 'sh', path, process.execPath, QUIET, ...nodeArgs, file, ...args],
    cwd: root,
    env: { ...ofTheMachine(), ...env },
  });
}

/** Like startProgram; `supervisor` stops the program. Returns its pid. */
export async function superviseProgram(supervisor: Supervisor, program: Omit<Program, 'signal'>): Promise<number> {
  const started = await startProgram({ ...program, signal: supervisor.signal });
  supervisor.adopt(program.name, started);
  return started.pid;
}

/** The user's own service settings in the environment must not affect what is measured or tested. */
export function ofTheMachine(): Environment {
  const { PATH, HOME, TMPDIR, LANG, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, TMPDIR, LANG, NODE_COMPILE_CACHE };
}
