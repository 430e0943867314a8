import { join } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';
import { startServer } from '../embedded/server-process.ts';
import type { ServerProcess } from '../embedded/server-process.ts';
import type { Supervisor } from './supervisor.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
/** Options of Node.js for every program here: type stripping is experimental by name in the oldest one that can. */
export const QUIET = '--disable-warning=ExperimentalWarning';
/**
 * Options of Node.js for ingress and worker. The young generation grows to 105 MB by itself, and to 32 MB with this, at
 * no cost in CPU time (docs/decisions/0074). Dockerfile and launch.mjs say the same; a test compares them.
 */
export const SERVICE_OPTIONS = ['--max-semi-space-size=16'];
/**
 * Settings of the C library for both, in the same places. Each thread of V8 would keep what it has once used to compile:
 * one store for all threads, that gives back what is free at its end, holds 20 MB less (docs/decisions/0074).
 */
export const SERVICE_ENV: Environment = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 15_000;
/** The shell is replaced by Node.js, so that the pid is the one of the program. */
const LOG_TO_FILE = 'log=$1; shift; exec "$@" >"$log"';
const LOG_TO_FILES = 'log=$1; shift; exec "$@" >"$log.log" 2>"$log.stderr.log"';

export interface Program {
  /** As a person calls it: "The ingress". */
  name: string;
  /** From the root of the project, or absolute. */
  file: string;
  /** Of another version of the project, with its packages. Default: this one. */
  root?: string;
  /** Options of Node.js itself. */
  nodeArgs?: readonly string[];
  /** The program's own. */
  args?: readonly string[];
  env: Environment;
  /**
   * `file` takes the standard output; what the program prints as an error is part of the message when it does not
   * start. `files` takes both, as `….log` and `….stderr.log`.
   */
  log: { file: string } | { files: string };
  ready: () => Promise<unknown>;
  stopTimeoutMs?: number;
  signal: AbortSignal;
}

/** Starts one of the project's programs as its npm script does, and waits until it can be used. */
export function startProgram(program: Program): Promise<ServerProcess> {
  const {
    name,
    file,
    root = ROOT,
    nodeArgs = [],
    args = [],
    env,
    log,
    ready,
    stopTimeoutMs = STOP_TIMEOUT_MS,
    signal,
  } = program;
  const [script, path] = 'file' in log ? [LOG_TO_FILE, log.file] : [LOG_TO_FILES, log.files];
  return startServer({
    name,
    command: '/bin/sh',
    args: ['-c', script, 'sh', path, process.execPath, QUIET, ...nodeArgs, file, ...args],
    cwd: root,
    env: { ...ofTheMachine(), ...env },
    ready,
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopTimeoutMs,
    signal,
  });
}

/** As startProgram; `supervisor` ends it. Returns its pid. */
export async function superviseProgram(supervisor: Supervisor, program: Omit<Program, 'signal'>): Promise<number> {
  const started = await startProgram({ ...program, signal: supervisor.signal });
  supervisor.adopt(program.name, started);
  return started.pid;
}

/** Settings of the user's own service in the environment must not change what is measured or tested. */
export function ofTheMachine(): Environment {
  const { PATH, HOME, TMPDIR, LANG, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, TMPDIR, LANG, NODE_COMPILE_CACHE };
}
