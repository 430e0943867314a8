import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { runStep } from '../../scripts/embedded/run-step.ts';
import type { Log } from '../../scripts/embedded/run-step.ts';
import { ROOT } from '../../scripts/harness/program.ts';
import type { LabOptions } from '../fault/lab/lab.ts';

/** Kept between runs: a commit does not change. */
const VERSIONS_DIR = join(ROOT, '.data', 'cache', 'versions');
const TIMEOUT_MS = 600_000;
/** Written last, so it tells that the folder is complete. */
const COMPLETE = '.complete';

interface Place {
  log: Log;
  signal: AbortSignal;
}

/** The project as a commit has it, with its own packages. `root`: where it stands. */
export interface EarlierVersion {
  root: string;
  commit: string;
}

/** Unpacks the commit and installs what its package-lock.json names. Throws one sentence. */
export async function openEarlierVersion(from: string, place: Place): Promise<EarlierVersion> {
  const [commit = ''] = await run(`git rev-parse ${from}`, ['git', '-C', ROOT, 'rev-parse', `${from}^{commit}`], place);
  const root = join(VERSIONS_DIR, commit);
  if (existsSync(join(root, COMPLETE))) return { root, commit };
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  const unpack = 'git -C "$1" archive "$2" | tar -x -C "$3"';
  await run(`unpack ${commit}`, ['/bin/sh', '-c', unpack, 'sh', ROOT, commit, root], place);
  await installPackages(root, place);
  await run('note that it is complete', ['touch', join(root, COMPLETE)], place);
  return { root, commit };
}

/** Limits that every version knows: what it does not know is what its tenants do not have after the upgrade either. */
const LIMITS = { rpm: 1_000_000, tpm: 1_000_000_000, chat_rpm: 1_000_000, stream_rpm: 1_000_000 };

/** A lab that begins as an installation of that version, with tenants, keys and providers of its making. */
export function installationOf(root: string): Pick<LabOptions, 'roots' | 'limits'> {
  return { roots: { ingress: root, worker: root }, limits: LIMITS };
}

async function installPackages(root: string, place: Place): Promise<void> {
  const [theirs, ours] = await Promise.all([root, ROOT].map((folder) => readFile(join(folder, 'package-lock.json'))));
  if (theirs !== undefined && ours?.equals(theirs) === true) {
    await cp(join(ROOT, 'node_modules'), join(root, 'node_modules'), { recursive: true, verbatimSymlinks: true });
    return;
  }
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm ci', ['npm', 'ci', '--prefix', root, ...options], place);
}

async function run(title: string, [command = '', ...args]: string[], place: Place): Promise<readonly string[]> {
  const result = await runStep({ title, command, args, timeoutMs: TIMEOUT_MS, ...place });
  if (result.ok) return result.lines;
  throw new Error(`${title} failed (${result.reason}): ${result.lines.slice(-3).join(' ')}`);
}
