import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

import type { Environment } from './find-program.ts';
import { LockHeldError, waitForLock } from './lock-file.ts';
import type { LockFile } from './lock-file.ts';

/** How many of a program's last lines are kept to explain why it failed. */
const KEPT_LINES = 12;

/** Reads what a child process prints, line by line, and keeps the last lines. */
export function collectLines(streams: readonly Readable[], onLine: (line: string) => void = () => undefined) {
  const last: string[] = [];
  for (const stream of streams) {
    createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => {
      if (line.trim() === '') return;
      last.push(line);
      if (last.length > KEPT_LINES) last.shift();
      onLine(line);
    });
  }
  return last;
}

/** `what`, followed by the program's last lines, indented. */
function withLastLines(what: string, lines: readonly string[]): string {
  if (lines.length === 0) return `${what} It printed nothing.`;
  return `${what} Its last lines:\n${lines.map((line) => `    ${line}`).join('\n')}`;
}

const READY_POLL_MS = 50;
/** How long to wait for the last lines of a process that has ended. */
const LAST_LINES_MS = 500;

export interface ServerOptions {
  /** The name that people use: "Redis", "MongoDB (mongod)". */
  name: string;
  command: string;
  args: readonly string[];
  cwd?: string;
  env?: Environment | undefined;
  /** Held by the server while it runs, so that its data is never opened twice. */
  lockFile?: string;
  /** Resolves when the server can be used; called again until it does. */
  ready: () => Promise<unknown>;
  readyTimeoutMs: number;
  /** How long the server may take to stop after SIGTERM. */
  stopTimeoutMs: number;
  onLine?: (line: string) => void;
  signal?: AbortSignal | undefined;
}

export interface ServerProcess {
  pid: number;
  /** Resolves with how the process ended: "exit code 1", "SIGKILL". */
  exited: Promise<string>;
  /** SIGTERM, then SIGKILL after the time limit; resolves when the process is gone. */
  stop(): Promise<void>;
  /** SIGKILL at once, for a user who does not want to wait. */
  kill(): void;
}

/**
 * Starts a server and waits until it can be used. On failure, rejects with its last lines and leaves nothing running.
 *
 * The server has its own process group, so a terminal's Ctrl-C does not reach it before the processes that use it have
 * closed. If this process dies without stopping the server, even by `kill -9`, a guard stops it.
 */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  options.signal?.throwIfAborted();
  const lock = await lockData(options);
  try {
    return await spawnServer(options, lock);
  } catch (error) {
    lock?.release();
    throw error;
  }
}

/** After a `kill -9` of an earlier start, its guard may still be stopping the lock's holder: waits for that. */
async function lockData({ name, lockFile, stopTimeoutMs, signal }: ServerOptions): Promise<LockFile | undefined> {
  if (lockFile === undefined) return undefined;
  try {
    return await waitForLock(lockFile, { timeoutMs: stopTimeoutMs, signal });
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    throw new Error(
      `${name} did not start: process ${error.pid} uses the data in ${dirname(lockFile)}; stop that process first.`,
      { cause: error },
    );
  }
}

async function spawnServer(options: ServerOptions, lock: LockFile | undefined): Promise<ServerProcess> {
  const child = spawn(options.command, options.args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: options.cwd,
    env: options.env,
  });
  const lines = collectLines([child.stdout, child.stderr], options.onLine);
  const exited = exitOf(child);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${options.name} did not start: ${await exited}.`);
  const guard = startGuard(pid);
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    await endChild(child, exited, options.stopTimeoutMs);
    lock?.release();
    guard.ref();
    await endChild(guard, exitOf(guard), 0);
  };
  const server: ServerProcess = { pid, exited, kill: () => child.kill('SIGKILL'), stop: () => (stopping ??= stop()) };
  try {
    lock?.handTo(pid);
    await untilReady(options, exited);
    return server;
  } catch (error) {
    await server.stop();
    if (options.signal?.aborted === true) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const sentence = `${options.name} did not start: ${reason}.`;
    // A caller that reads every line has already shown them.
    throw new Error(options.onLine === undefined ? withLastLines(sentence, lines) : sentence, { cause: error });
  }
}

async function untilReady({ ready, readyTimeoutMs, signal }: ServerOptions, exited: Promise<string>): Promise<void> {
  const timer = new AbortController();
  const late = pause(readyTimeoutMs, 'late' as const, { signal: timer.signal });
  const deadline = performance.now() + readyTimeoutMs;
  const gone = exited.then((how) => ({ how }));
  let cause: unknown;
  try {
    for (;;) {
      const attempt = ready().then(
        () => 'ready' as const,
        (error: unknown) => ({ error }),
      );
      const outcome = await Promise.race([attempt, gone, late]);
      if (outcome === 'ready') return;
      if (typeof outcome === 'object' && 'how' in outcome) throw new Error(`it ended with ${outcome.how}`);
      if (outcome !== 'late') cause = outcome.error;
      // An attempt that fails at once would win against the timer forever.
      if (outcome === 'late' || performance.now() > deadline) {
        throw new Error(`it could not be used after ${Math.ceil(readyTimeoutMs / 1000)} s`, { cause });
      }
      await pause(READY_POLL_MS, undefined, { signal });
    }
  } finally {
    timer.abort();
    await late.catch(() => undefined);
  }
}

/** Tells how a process ended, once its last lines have been read. */
export function exitOf(child: ChildProcess): Promise<string> {
  if (child.exitCode !== null) return Promise.resolve(`exit code ${child.exitCode}`);
  if (child.signalCode !== null) return Promise.resolve(child.signalCode);
  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('exit', (code, signal) => {
      const how = code === null ? (signal ?? 'a signal') : `exit code ${code}`;
      const done = () => {
        resolve(how);
      };
      // 'close' comes once the last line has been read; a process that the child started and that outlives it delays
      // this.
      child.once('close', done);
      setTimeout(done, LAST_LINES_MS).unref();
    });
  });
}

async function endChild(child: ChildProcess, exited: Promise<string>, timeoutMs: number): Promise<void> {
  if (timeoutMs > 0) {
    child.kill('SIGTERM');
    const timer = new AbortController();
    const late = pause(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([exited, late]);
    timer.abort();
  }
  child.kill('SIGKILL');
  await exited;
}

/** Waits for its input to end, which happens when this process ends, then stops process $1. */
const GUARD = `
read -r _
kill -TERM "$1" || exit 0
n=0
while kill -0 "$1" && [ "$n" -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
kill -KILL "$1"
`;

function startGuard(pid: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Even without a guard, `stop` stops the server.
  guard.on('error', () => undefined);
  guard.unref();
  return guard;
}
