import { spawn } from 'node:child_process';

import { collectLines } from './server-process.ts';
import type { Environment } from './find-program.ts';

/** How often at least a line says that a long step is still running. */
const HEARTBEAT_MS = 10_000;

export type Log = (line: string) => void;

export interface Step {
  /** What the step does, for the log: "pip install SecantusDB". */
  title: string;
  command: string;
  args: readonly string[];
  log: Log;
  /** Matches output lines that show the progress. */
  progress?: RegExp;
  env?: Environment | undefined;
  /** Stops the step after this long. */
  timeoutMs: number;
  /** Stops the step if it prints nothing for this long. */
  silenceMs?: number;
  /** Stops the step from outside (Ctrl-C). */
  signal?: AbortSignal | undefined;
}

export type StepResult =
  { ok: true; lines: readonly string[] } | { ok: false; reason: string; lines: readonly string[] };

/**
 * Runs a program to its end and shows its progress. Never rejects, except on `signal`. The program has its own process
 * group, so stopping it also stops what it started.
 */
export async function runStep(step: Step): Promise<StepResult> {
  step.signal?.throwIfAborted();
  const child = spawn(step.command, step.args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(step.env === undefined ? {} : { env: step.env }),
  });
  let reason: string | undefined;
  const end = (why: string) => {
    reason ??= why;
    endGroup(child.pid);
  };
  const abort = () => {
    end('stopped');
  };
  const watch = watchProgress(step, end);
  const lines = collectLines([child.stdout, child.stderr], watch.onLine);
  step.signal?.addEventListener('abort', abort);
  const outcome = await new Promise<string | number>((resolve) => {
    child.once('error', (error) => {
      resolve(error.message);
    });
    child.once('close', (code, signal) => {
      resolve(code ?? `ended by ${signal ?? 'a signal'}`);
    });
  });
  watch.stop();
  step.signal?.removeEventListener('abort', abort);
  step.signal?.throwIfAborted();
  if (reason === undefined && outcome === 0) return { ok: true, lines };
  return { ok: false, reason: reason ?? (typeof outcome === 'number' ? `exit code ${outcome}` : outcome), lines };
}

/** Logs lines that show progress, reports regularly that the step is still running, and stops it at its limits. */
function watchProgress({ title, log, progress, timeoutMs, silenceMs }: Step, end: (why: string) => void) {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1000);
  const heartbeat = setInterval(() => {
    log(`${title}: still running (${seconds()} s)`);
  }, HEARTBEAT_MS);
  const timers = [
    setTimeout(() => {
      end(`not done after ${Math.round(timeoutMs / 1000)} s`);
    }, timeoutMs),
  ];
  const silence =
    silenceMs === undefined
      ? undefined
      : setTimeout(() => {
          end(`no answer for ${Math.round(silenceMs / 1000)} s`);
        }, silenceMs);
  if (silence !== undefined) timers.push(silence);
  return {
    onLine: (line: string) => {
      silence?.refresh();
      if (progress?.test(line) !== true) return;
      heartbeat.refresh();
      log(`${title}: ${line.trim()}`);
    },
    stop: () => {
      clearInterval(heartbeat);
      timers.forEach(clearTimeout);
    },
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // It has meanwhile ended by itself.
  }
}
