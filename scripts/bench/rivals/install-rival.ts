import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ROOT } from '../../harness/program.ts';

export interface RivalPackage {
  /** Folder name below `.data/rivals`. */
  name: string;
  packageName: string;
  version: string;
  overrides?: Record<string, string>;
}

export const PORTKEY: RivalPackage = {
  name: 'portkey',
  packageName: '@portkey-ai/gateway',
  version: '1.15.2',
  // The version that the package asks for does not run on Node.js 24.
  overrides: { '@hono/node-server': '1.14.1' },
};

/** Rivals are no dependencies of this project: they are installed when they are measured. Returns the folder. */
export async function installRival(rival: RivalPackage, log: (line: string) => void): Promise<string> {
  const { name, packageName, version, overrides = {} } = rival;
  const dir = join(ROOT, '.data', 'rivals', name);
  const installed = join(dir, 'node_modules', packageName);
  if (versionIn(installed) === version) return installed;
  log(`installing ${packageName} ${version} into .data/rivals ...`);
  await mkdir(dir, { recursive: true });
  const manifest = { private: true, dependencies: { [packageName]: version }, overrides };
  await writeFile(join(dir, 'package.json'), JSON.stringify(manifest));
  await npmInstall(dir);
  if (versionIn(installed) !== version) throw new Error(`${packageName} ${version} was not installed.`);
  return installed;
}

function versionIn(folder: string): unknown {
  const file = join(folder, 'package.json');
  if (!existsSync(file)) return undefined;
  // Written by npm.
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: unknown }).version;
}

/** Skips the packages' own scripts, which nothing measured here needs. */
function npmInstall(cwd: string): Promise<void> {
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-save', '--loglevel=error'];
  return new Promise((resolve, reject) => {
    const npm = spawn('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
    npm.once('error', reject);
    npm.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`npm install failed in ${cwd} (exit code ${code ?? 'none'}).`));
    });
  });
}
