import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

import type { Environment } from '../../scripts/embedded/find-program.ts';
import { ofTheMachine, QUIET, ROOT } from '../../scripts/harness/program.ts';

/** Half a minute more than it takes: test runs share their machine. */
const READY_TIMEOUT_MS = 40_000;
const POLL_MS = 25;

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Milliseconds from the start of the process. */
  afterMs: number;
}

/** A process of the service, as a user starts it. */
export interface TestProcess {
  pid: number;
  exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
  /** To this process and nothing else. */
  signal(signal: NodeJS.Signals): void;
  /** Ends it for sure; safe to repeat. */
  kill(): Promise<void>;
}

export type ProcessFile = 'api/main.ts' | 'workers/main.ts' | 'scripts/simulated-provider/main.ts' | 'scripts/start.ts';

/** An environment without settings of the machine or of an outer run. */
function cleanEnvironment(settings: Record<string, string>): Environment {
  return { ...ofTheMachine(), ...settings };
}

function exitOf(child: ChildProcess): Promise<Exit> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ code, signal, afterMs: performance.now() - startedAt });
    });
  });
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = '';
  stream?.setEncoding('utf8').on('data', (part: string) => (text += part));
  return () => text;
}

/** Starts a process and does not wait for it. It ends with the test run at the latest. */
export function spawnProcess(file: ProcessFile, settings: Record<string, string>): TestProcess {
  const child = spawn(process.execPath, [QUIET, file], {
    cwd: ROOT,
    env: cleanEnvironment(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw new Error(`${file} could not be started`);
  const exited = exitOf(child);
  const endWithTests = () => child.kill('SIGKILL');
  process.once('exit', endWithTests);
  void exited.then(() => process.off('exit', endWithTests));
  return {
    pid: child.pid,
    exited,
    stdout: collect(child.stdout),
    stderr: collect(child.stderr),
    signal: (signal) => child.kill(signal),
    async kill() {
      // A stopped process takes no SIGTERM; SIGKILL ends it all the same.
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Waits until `url` answers 2xx; throws with the process's own words when it ends before. */
export async function waitUntilReady(started: TestProcess, url: string): Promise<void> {
  let exit: Exit | undefined;
  void started.exited.then((how) => (exit = how));
  const until = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok === true) return;
    if (exit !== undefined || performance.now() > until) {
      await started.kill();
      throw new Error(`${url} did not become ready: ${started.stderr()}${started.stdout()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
