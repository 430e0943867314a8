import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { findProgram } from '../../scripts/embedded/find-program.ts';
import { prepareVenv } from '../../scripts/embedded/python-venv.ts';
import { runStep } from '../../scripts/embedded/run-step.ts';
import { installSystemPackages } from '../../scripts/embedded/system-package.ts';
import { ROOT } from '../../scripts/harness/program.ts';
import startStores from '../support/start-stores.ts';

const CACHE_DIR = join(resolve(ROOT, process.env['DATA_DIR'] ?? '.data'), 'cache');
const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt');
const LOCK = join(import.meta.dirname, 'package-lock.json');
/** npm writes this file last. */
const INSTALLED = join(import.meta.dirname, 'node_modules', '.package-lock.json');
const CHROMIUM = { apt: ['chromium'], apk: ['chromium'], dnf: ['chromium'] };
const NPM_TIMEOUT_MS = 5 * 60_000;

const log = (line: string) => {
  console.log(line);
};

/** jest's globalSetup of `npm run test:clients`: installs the clients that are missing, and starts the stores. */
export default async function setUp(): Promise<void> {
  await Promise.all([installPackages(), installVenv(), findBrowser(), startStores()]);
}

/** A browser is 480 MB: only root's machine gets one, others may have one. */
async function findBrowser(): Promise<void> {
  let program = await findProgram('chromium');
  if (program === undefined) {
    log('Chromium: installing it with the package manager, which takes about a minute');
    const failure = await installSystemPackages({ packages: CHROMIUM, log });
    program = await findProgram('chromium');
    if (program === undefined)
      log(`Chromium: a browser's EventSource is not tried: ${failure ?? 'it is not on the PATH'}`);
  }
  if (program !== undefined) process.env['TEST_CLIENTS_BROWSER'] = program;
}

async function installPackages(): Promise<void> {
  if (existsSync(INSTALLED) && statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs) return;
  const result = await runStep({
    title: 'npm ci of the JavaScript clients',
    command: 'npm',
    args: ['ci', '--prefix', import.meta.dirname, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    log,
    progress: /^added/,
    timeoutMs: NPM_TIMEOUT_MS,
  });
  if (!result.ok) throw new Error(`The JavaScript clients could not be installed: ${result.lines.slice(-3).join(' ')}`);
}

/** Tests find the Python that has the clients in `TEST_CLIENTS_PYTHON`. */
async function installVenv(): Promise<void> {
  const digest = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12);
  const { command } = await prepareVenv(
    {
      requirement: `test/clients/requirements.txt (${digest})`,
      hashes: REQUIREMENTS,
      name: 'the Python clients',
      program: 'openai',
      subject: 'Python clients',
      folder: 'clients-venv',
      takes: '20 seconds',
    },
    { cacheDir: CACHE_DIR, log },
  );
  process.env['TEST_CLIENTS_PYTHON'] = command;
}
