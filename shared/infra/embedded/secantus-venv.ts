import { access, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { findProgram } from './find-program.ts';
import type { Environment } from './find-program.ts';
import { waitForLock } from './lock-file.ts';
import { runStep } from './run-step.ts';
import type { Log, StepResult } from './run-step.ts';
import { installSystemPackages } from './system-package.ts';

/** contract.md section 1. */
const PACKAGE = 'SecantusDB==0.7.0b3';
const PYTHON_NAMES = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];
/** Exits 0 where SecantusDB runs on this Python. */
const IS_NEW_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 10))';
const PYTHON_PACKAGES = {
  apt: ['python3', 'python3-venv'],
  apk: ['python3'],
  dnf: ['python3'],
};

const CHECK_TIMEOUT_MS = 20_000;
const VENV_TIMEOUT_MS = 2 * 60_000;
const PIP_TIMEOUT_MS = 10 * 60_000;
const LOCK_TIMEOUT_MS = PIP_TIMEOUT_MS;

export interface VenvOptions {
  cacheDir: string;
  log: Log;
  env?: Environment | undefined;
  signal?: AbortSignal | undefined;
}

/** How to run `secantusd-py`: through the interpreter, so that the folder may have been moved since. */
export interface SecantusCommand {
  command: string;
  args: string[];
}

/** Makes the virtual environment once; safe to call from several processes at the same time. Rejects with one sentence. */
export async function prepareSecantus(options: VenvOptions): Promise<SecantusCommand> {
  const venv = join(options.cacheDir, 'secantus-venv');
  const ready = { command: join(venv, 'bin', 'python'), args: [join(venv, 'bin', 'secantusd-py')] };
  if (await isComplete(venv, ready)) return ready;
  const lock = await waitForLock(`${venv}.lock`, {
    timeoutMs: LOCK_TIMEOUT_MS,
    signal: options.signal,
    onWait: (pid) => {
      options.log(`MongoDB: waiting for process ${pid}, which installs SecantusDB`);
    },
  });
  try {
    if (!(await isComplete(venv, ready))) await build(venv, options);
    return ready;
  } finally {
    await lock.release();
  }
}

const markerOf = (venv: string) => join(venv, 'parley-complete');

/** A marker without a working interpreter is left where the system's Python was replaced. */
async function isComplete(venv: string, { command, args }: SecantusCommand): Promise<boolean> {
  try {
    if ((await readFile(markerOf(venv), 'utf8')) !== PACKAGE) return false;
    await Promise.all([command, ...args].map((file) => access(file)));
    return true;
  } catch {
    return false;
  }
}

async function build(venv: string, options: VenvOptions): Promise<void> {
  const { log } = options;
  log(`MongoDB: installing ${PACKAGE} into ${venv}, which takes about 20 seconds`);
  await mkdir(options.cacheDir, { recursive: true });
  await createVenv(venv, options);
  const pip = await step(options, 'pip install SecantusDB', join(venv, 'bin', 'python'), PIP_TIMEOUT_MS, [
    ...[
      '-m',
      'pip',
      'install',
      '--disable-pip-version-check',
      '--no-input',
      '--no-compile',
      '--progress-bar',
      'off',
      PACKAGE,
    ],
  ]);
  if (!pip.ok) throw new Error(`SecantusDB could not be installed (${reasonOf(pip)})`);
  await writeFile(markerOf(venv), PACKAGE);
}

async function createVenv(venv: string, options: VenvOptions): Promise<void> {
  const create = async (python: string) => {
    await rm(venv, { recursive: true, force: true });
    return step(options, 'python3 -m venv', python, VENV_TIMEOUT_MS, ['-m', 'venv', venv]);
  };
  const python = await findPython(options);
  const first = python === undefined ? undefined : await create(python);
  if (first?.ok === true) return;
  options.log(
    first === undefined
      ? 'MongoDB: Python 3.10 or newer is not on the PATH; installing it with the package manager of this system'
      : `MongoDB: python3 -m venv failed (${reasonOf(first)}); installing what it needs with the package manager`,
  );
  const failure = await installSystemPackages({ ...options, packages: PYTHON_PACKAGES });
  const installed = failure === undefined ? await findPython(options) : undefined;
  if (installed === undefined) {
    throw new Error(`SecantusDB needs Python 3.10 or newer with venv, and ${failure ?? 'the system has an older one'}`);
  }
  const second = await create(installed);
  if (!second.ok) throw new Error(`python3 -m venv failed (${reasonOf(second)})`);
}

async function findPython(options: VenvOptions): Promise<string | undefined> {
  for (const name of PYTHON_NAMES) {
    const python = await findProgram(name, options.env);
    if (python === undefined) continue;
    const check = await step(options, `${name} version`, python, CHECK_TIMEOUT_MS, ['-c', IS_NEW_ENOUGH]);
    if (check.ok) return python;
  }
  return undefined;
}

function step(
  { log, env, signal }: VenvOptions,
  title: string,
  command: string,
  timeoutMs: number,
  args: string[],
): Promise<StepResult> {
  const progress = /^(Collecting|Building|Installing|Successfully)/;
  return runStep({ title, command, args, log, progress, timeoutMs, env, signal });
}

function reasonOf(result: StepResult): string {
  return result.ok ? '' : [result.reason, ...result.lines.slice(-1)].join(': ');
}
