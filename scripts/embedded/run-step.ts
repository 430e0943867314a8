import { spawn } from 'node:child_process';

import { collectLines, exitOf } from './server-process.ts';
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
  /** Stops the step if it prints nothing for this long. Default: `timeoutMs`. */
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
  const child = spawn(step.command, step.args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: step.env });
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
  const how = await exitOf(child);
  watch.stop();
  step.signal?.removeEventListener('abort', abort);
  step.signal?.throwIfAborted();
  return reason === undefined && how === 'exit code 0'
    ? { ok: true, lines }
    : { ok: false, reason: reason ?? how, lines };
}

/** Logs lines that show progress, reports regularly that the step is still running, and stops it at its limits. */
function watchProgress({ title, log, progress, timeoutMs, silenceMs = timeoutMs }: Step, end: (why: string) => void) {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1000);
  const heartbeat = setInterval(() => {
    log(`${title}: still running (${seconds()} s)`);
  }, HEARTBEAT_MS);
  const limit = setTimeout(() => {
    end(`not done after ${Math.round(timeoutMs / 1000)} s`);
  }, timeoutMs);
  const silence = setTimeout(() => {
    end(`no answer for ${Math.round(silenceMs / 1000)} s`);
  }, silenceMs);
  return {
    onLine: (line: string) => {
      silence.refresh();
      if (progress?.test(line) !== true) return;
      heartbeat.refresh();
      log(`${title}: ${line.trim()}`);
    },
    stop: () => {
      for (const timer of [heartbeat, limit, silence]) clearTimeout(timer);
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
