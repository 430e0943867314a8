import { access, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

import { findProgram } from './find-program.ts';
import type { Environment } from './find-program.ts';
import { waitForLock } from './lock-file.ts';
import { runStep } from './run-step.ts';
import type { Log, StepResult } from './run-step.ts';
import { installSystemPackages } from './system-package.ts';

const PYTHON_NAMES = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10'];
/**
 * If it is on the PATH, the distribution's own Python comes first: it is built with optimizations that version managers
 * leave out, and SecantusDB needs a sixth less CPU time with it.
 */
const DISTRIBUTION = '/usr/bin';
/** Exits with 0 on a Python that can run the packages installed here. */
const IS_NEW_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 10))';
const PYTHON_PACKAGES = { apt: ['python3', 'python3-venv'], apk: ['python3'], dnf: ['python3'] };
const PIP_INSTALL = [
  '-m',
  'pip',
  'install',
  '--disable-pip-version-check',
  '--no-input',
  '--no-compile',
  '--progress-bar',
  'off',
];

const CHECK_TIMEOUT_MS = 20_000;
const VENV_TIMEOUT_MS = 2 * 60_000;
const PIP_TIMEOUT_MS = 10 * 60_000;
const LOCK_TIMEOUT_MS = PIP_TIMEOUT_MS;

/** A server from the Python Package Index. */
export interface PythonPackage {
  /** In pip's notation, with the version: `SecantusDB==0.7.0b3`. */
  requirement: string;
  /**
   * A file with hashes of all packages that are to be installed: nothing else is, and anything else that a server sends is
   * refused. Wheels only, because building one would fetch tools that have no hash.
   */
  hashes?: string;
  /** The name that people use. */
  name: string;
  /** The program that the package installs, if it is to be run. */
  program?: string;
  /** The prefix of every log line that is not pip's. */
  subject: string;
  /** The folder of the virtual environment, in the cache folder. */
  folder: string;
  /** How long the installation takes, for the log. */
  takes: string;
}

export interface VenvOptions {
  cacheDir: string;
  log: Log;
  env?: Environment | undefined;
  signal?: AbortSignal | undefined;
}

/** Runs the program through the interpreter, so that the folder may be moved. */
export interface VenvCommand {
  command: string;
  args: string[];
}

/** Creates the virtual environment once; several processes may call this at once. Rejects with one sentence. */
export async function prepareVenv(wanted: PythonPackage, options: VenvOptions): Promise<VenvCommand> {
  const { requirement, name, subject } = wanted;
  const venv = join(options.cacheDir, wanted.folder);
  const program = wanted.program === undefined ? [] : [join(venv, 'bin', wanted.program)];
  const ready = { command: join(venv, 'bin', 'python'), args: program };
  if (await isComplete(venv, requirement, ready)) return ready;
  const lock = await waitForLock(`${venv}.lock`, {
    timeoutMs: LOCK_TIMEOUT_MS,
    signal: options.signal,
    onWait: (pid) => {
      options.log(`${subject}: waiting for process ${pid}, which installs ${name}`);
    },
  });
  try {
    if (!(await isComplete(venv, requirement, ready))) await build(venv, wanted, options);
    return ready;
  } finally {
    lock.release();
  }
}

const markerOf = (venv: string) => join(venv, 'parley-complete');

/** If the system's Python was replaced, a marker without a working interpreter is left behind. */
async function isComplete(venv: string, requirement: string, { command, args }: VenvCommand): Promise<boolean> {
  try {
    if ((await readFile(markerOf(venv), 'utf8')) !== requirement) return false;
    await Promise.all([command, ...args].map((file) => access(file)));
    return true;
  } catch {
    return false;
  }
}

async function build(venv: string, wanted: PythonPackage, options: VenvOptions): Promise<void> {
  const { requirement, hashes, name, subject, takes } = wanted;
  options.log(`${subject}: installing ${requirement} into ${venv}, which takes about ${takes}`);
  await mkdir(options.cacheDir, { recursive: true });
  await createVenv(venv, wanted, options);
  const python = join(venv, 'bin', 'python');
  const exactly = ['--require-hashes', '--no-deps', '--only-binary', ':all:', '-r'];
  const what = hashes === undefined ? [requirement] : [...exactly, hashes];
  const pip = await step(options, `pip install ${name}`, python, PIP_TIMEOUT_MS, [...PIP_INSTALL, ...what]);
  if (!pip.ok) throw new Error(`${name} could not be installed (${reasonOf(pip)})`);
  await writeFile(markerOf(venv), requirement);
}

async function createVenv(venv: string, { name, subject }: PythonPackage, options: VenvOptions): Promise<void> {
  const create = async (python: string) => {
    await rm(venv, { recursive: true, force: true });
    return step(options, 'python3 -m venv', python, VENV_TIMEOUT_MS, ['-m', 'venv', venv]);
  };
  /** The last result; undefined if no Python is new enough. */
  const createWithAny = async () => {
    let last: StepResult | undefined;
    for await (const python of findPythons(options)) {
      last = await create(python);
      if (last.ok) break;
    }
    return last;
  };
  const first = await createWithAny();
  if (first?.ok === true) return;
  options.log(
    first === undefined
      ? `${subject}: Python 3.10 or newer is not on the PATH; installing it with the package manager of this system`
      : `${subject}: python3 -m venv failed (${reasonOf(first)}); installing what it needs with the package manager`,
  );
  const failure = await installSystemPackages({ ...options, packages: PYTHON_PACKAGES });
  const second = failure === undefined ? await createWithAny() : undefined;
  if (second === undefined) {
    throw new Error(`${name} needs Python 3.10 or newer with venv, and ${failure ?? 'the system has an older one'}`);
  }
  if (!second.ok) throw new Error(`python3 -m venv failed (${reasonOf(second)})`);
}

async function* findPythons(options: VenvOptions): AsyncGenerator<string> {
  const { PATH = '' } = options.env ?? process.env;
  const own = PATH.split(delimiter).includes(DISTRIBUTION) ? [join(DISTRIBUTION, 'python3')] : [];
  for (const name of [...own, ...PYTHON_NAMES]) {
    const python = await findProgram(name, options.env);
    if (python === undefined) continue;
    const check = await step(options, `${name} version`, python, CHECK_TIMEOUT_MS, ['-c', IS_NEW_ENOUGH]);
    if (check.ok) yield python;
  }
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
