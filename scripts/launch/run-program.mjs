import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const BIN = join(ROOT, 'node_modules', '.bin');

/** What Node.js has compiled, for the next process that loads the same files: that halves the time of a start. */
const CACHE =
  process.env.NODE_ENV === 'production' ? {} : { NODE_COMPILE_CACHE: join(ROOT, '.data', 'cache', 'compiled') };

/** What ends a task with a sentence (none after a signal) and without a stack trace. */
export class Failure extends Error {
  constructor(sentence, exitCode = 1) {
    super(sentence);
    this.exitCode = exitCode;
  }
}

/** The child process that signals go to. */
let current;
let signalledAt = -Infinity;
/** npm passes on the Ctrl-C that the terminal has sent here already: signals this close are one key press. */
const ONE_KEY_PRESS_MS = 400;

/**
 * The shell of most tasks dies of the SIGTERM that a supervisor sends to npm, and tells nobody: its orphan has to see it.
 * That of a service is replaced (`exec` in package.json), so that npm ends when the service has ended and not before.
 */
const PARENT = process.ppid;
const PARENT_CHECK_MS = 500;

/** Passes the signals that this process gets, and its parent's end, on to the program that runs. */
export function followSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      stop(signal);
    });
  }
  // Below other scripts of npm a parent may end that has started this for good.
  if (/^(exec )?node scripts\/launch\.mjs/.test(process.env.npm_lifecycle_script ?? '')) {
    const check = setInterval(() => {
      if (process.ppid === PARENT) return;
      clearInterval(check);
      // After a signal of its own this would be the second one, which ends everything at once.
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
    // It has ended by itself in the meantime.
  }
}

/**
 * Runs a program to its end and returns its exit code. It has a process group of its own, so that a terminal's Ctrl-C
 * reaches it once, from here. With `isOwner` it also learns, by its channel's end, when this process was killed.
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
