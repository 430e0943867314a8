import { spawn } from 'node:child_process';
import { collectLines } from './output-lines.ts';
import type { Environment } from './find-program.ts';

/** A line that says at least this often that a long step still runs. */
const HEARTBEAT_MS = 10_000;

export type Log = (line: string) => void;

export interface Step {
  /** What the step does, for the log: "pip install SecantusDB". */
  title: string;
  command: string;
  args: readonly string[];
  log: Log;
  /** Lines of the program that show a person how far it is. */
  progress?: RegExp;
  env?: Environment | undefined;
  /** Ends the step after this long. */
  timeoutMs: number;
  /** Ends the step when it prints nothing for so long. */
  silenceMs?: number;
  /** Ends the step from outside (Ctrl-C). */
  signal?: AbortSignal | undefined;
}

export type StepResult =
  { ok: true; lines: readonly string[] } | { ok: false; reason: string; lines: readonly string[] };

/**
 * Runs a program to its end and shows its progress. Never rejects, but for `signal`.
 * The program has its own process group, so that ending it also ends what it started.
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

/** Logs the lines that show progress, says regularly that the step still runs, and ends it at its limits. */
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
    // It has ended by itself in the meantime.
  }
}
