import { mkdir, rm, writeFile } from 'node:fs/promises';

import { findProgram } from './find-program.ts';
import type { Environment } from './find-program.ts';
import { runStep } from './run-step.ts';
import type { Log, StepResult } from './run-step.ts';

/** Package names by package manager; a manager without a list is not used. */
interface PackageNames {
  apt: readonly string[];
  apk: readonly string[];
  dnf: readonly string[];
}

export interface InstallOptions {
  packages: PackageNames;
  log: Log;
  env?: Environment | undefined;
  signal?: AbortSignal | undefined;
  /** For tests; default: whether this process runs as root. */
  isRoot?: boolean;
}

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const VERBS = ['update', 'install', 'add'];
const POLICY_FILE = '/usr/sbin/policy-rc.d';

/**
 * Installs with the system's package manager, if there is one and the user is root. Returns undefined when done, or
 * else the reason why not, as the rest of a sentence.
 */
export async function installSystemPackages(options: InstallOptions): Promise<string | undefined> {
  const { packages, env } = options;
  const isRoot = options.isRoot ?? process.getuid?.() === 0;
  if (!isRoot) return 'only root can install it by the package manager';
  if ((await findProgram('apt-get', env)) !== undefined) return aptInstall(options, packages.apt);
  if ((await findProgram('apk', env)) !== undefined) {
    return failureOf(await step(options, 'apk', ['add', ...packages.apk]));
  }
  for (const manager of ['dnf', 'yum']) {
    if ((await findProgram(manager, env)) === undefined) continue;
    return failureOf(await step(options, manager, ['install', '-y', ...packages.dnf]));
  }
  return 'none of apt-get, apk, dnf and yum is on the PATH';
}

/** `DPkg::Lock::Timeout`: waits for another installation on this machine instead of failing at once. */
const APT_OPTIONS = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=120'];

async function aptInstall(options: InstallOptions, packages: readonly string[]): Promise<string | undefined> {
  // An outdated or partly unreachable list may still be enough, so only the result of the installation counts.
  await step(options, 'apt-get', [...APT_OPTIONS, 'update']);
  return withoutServiceStart(async () => {
    const install = ['install', '--no-install-recommends', ...packages];
    return failureOf(await step(options, 'apt-get', [...APT_OPTIONS, ...install]));
  });
}

/** Debian starts a service when its package is installed, unless a policy-rc.d answers 101 ("action forbidden"). */
async function withoutServiceStart<T>(install: () => Promise<T>): Promise<T> {
  const created = await mkdir('/usr/sbin', { recursive: true })
    .then(() => writeFile(POLICY_FILE, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }))
    .then(() => true)
    // A machine that has its own policy keeps it.
    .catch(() => false);
  try {
    return await install();
  } finally {
    if (created) await rm(POLICY_FILE, { force: true });
  }
}

function step(options: InstallOptions, command: string, args: readonly string[]): Promise<StepResult> {
  // `env` sets the variable only for apt-get, which would otherwise ask questions on a terminal.
  return runStep({
    title: `${command} ${args.find((arg) => VERBS.includes(arg)) ?? ''}`,
    command: '/usr/bin/env',
    args: ['DEBIAN_FRONTEND=noninteractive', command, ...args],
    log: options.log,
    progress: /^(Get:|Setting up|\(\d+\/\d+\)|Installing|Downloading)/,
    timeoutMs: INSTALL_TIMEOUT_MS,
    env: options.env,
    signal: options.signal,
  });
}

function failureOf(result: StepResult): string | undefined {
  if (result.ok) return undefined;
  return `the package manager failed (${[result.reason, ...result.lines.slice(-1)].join(': ')})`;
}
