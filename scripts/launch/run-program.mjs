import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const BIN = join(ROOT, 'node_modules', '.bin');

/** Caches compiled code for the next process that loads the same files, which halves its start time. */
const CACHE =
  process.env.NODE_ENV === 'production' ? {} : { NODE_COMPILE_CACHE: join(ROOT, '.data', 'cache', 'compiled') };

/** Ends a task with a sentence (none after a signal) and without a stack trace. */
export class Failure extends Error {
  constructor(sentence, exitCode = 1) {
    super(sentence);
    this.exitCode = exitCode;
  }
}

/** The child process to which signals are passed on. */
let current;
let signalledAt = -Infinity;
/** npm also passes on the Ctrl-C that the terminal has already sent here: signals this close are one key press. */
const ONE_KEY_PRESS_MS = 400;

/**
 * In most tasks, the shell dies of the SIGTERM that a supervisor sends to npm and does not pass it on, so its orphan
 * has to notice. A service replaces the shell (`exec` in package.json), so that npm ends only after the service has
 * ended.
 */
const PARENT = process.ppid;
const PARENT_CHECK_MS = 500;

/** Passes on this process's signals, and the end of its parent, to the running program. */
export function followSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      stop(signal);
    });
  }
  // Below other npm scripts, a parent may end that has deliberately left this running.
  if (/^(exec )?node scripts\/launch\.mjs/.test(process.env.npm_lifecycle_script ?? '')) {
    const check = setInterval(() => {
      if (process.ppid === PARENT) return;
      clearInterval(check);
      // After an own signal, this would be the second one, which stops everything at once.
      if (signalledAt === -Infinity) stop('SIGTERM');
    }, PARENT_CHECK_MS).unref();
  }
}

function stop(signal) {
  const isRepeated = performance.now() - signalledAt < ONE_KEY_PRESS_MS;
  signalledAt = performance.now();
  if (isRepeated) return;
  if (current === undefined) process.exit(128 + constants.signals[signal]);
  signalGroup(current, signal === 'SIGHUP' ? 'SIGTERM' : signal);
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has meanwhile ended by itself.
  }
}

/**
 * Runs a program to its end and returns its exit code. It has its own process group, so that a terminal's Ctrl-C
 * reaches it only once, from here. With `isOwner`, the end of its channel also shows it that this process was killed.
 */
export function run(command, args, { env = {}, isOwner = false } = {}) {
  return new Promise((resolve, reject) => {
    current = spawn(command, args, {
      cwd: ROOT,
      detached: true,
      stdio: isOwner ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
      env: { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`, ...CACHE, ...env },
    });
    current.once('error', (error) => reject(new Failure(`${command} could not be run: ${error.message}.`)));
    current.once('exit', (code, signal) => {
      current = undefined;
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}
