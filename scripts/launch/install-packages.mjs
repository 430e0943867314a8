import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { Failure, ROOT, run } from './run-program.mjs';

const LOCK = join(ROOT, 'package-lock.json');
/** npm writes this file last, so it shows what is installed and that the installation was completed. */
const INSTALLED = join(ROOT, 'node_modules', '.package-lock.json');

/** Two tasks that start at the same time in a new clone must not install into the same folder. */
export async function installIfDue() {
  if (!isInstallDue()) return;
  const user = process.getuid?.() ?? 'all';
  const claim = join(
    tmpdir(),
    `parley-install-${user}-${createHash('sha256').update(ROOT).digest('hex').slice(0, 16)}`,
  );
  for (let holder = tryClaim(claim), isFirst = true; holder !== undefined; holder = tryClaim(claim), isFirst = false) {
    if (isFirst) console.log(`Waiting for process ${holder}, which installs the packages (or delete ${claim}) ...`);
    await pause(500);
  }
  try {
    if (isInstallDue()) await install();
  } finally {
    rmSync(claim, { force: true });
  }
}

/** Undefined: this process now holds the file. Otherwise its holder; the file of an ended process is taken over. */
function tryClaim(file) {
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: 'wx' });
      return undefined;
    } catch (error) {
      if (error.code !== 'EEXIST') {
        throw new Failure(
          `${file} cannot be written (${error.code}): make room there, or set TMPDIR to another folder.`,
        );
      }
    }
    const holder = holderOf(file);
    if (holder !== undefined) return holder;
    rmSync(file, { force: true });
  }
}

/** How long a file that is being written may be empty. */
const EMPTY_MS = 5_000;

function holderOf(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    if (pid === 0) return Date.now() - statSync(file).mtimeMs < EMPTY_MS ? 'unknown' : undefined;
    process.kill(pid, 0);
    return pid;
  } catch {
    // The process has ended, or its pid now belongs to another user.
    return undefined;
  }
}

async function install() {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1000);
  console.log('Installing the packages of package-lock.json (npm ci), which takes up to a minute ...');
  const heartbeat = setInterval(() => console.log(`npm ci: still running (${seconds()} s)`), 10_000);
  try {
    // Only npm 11.16 and later read `allowScripts` of package.json, so no npm runs any script here; the one that is
    // needed follows.
    await npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
    await fetchNode();
  } finally {
    clearInterval(heartbeat);
  }
  console.log(`Installed the packages in ${seconds()} s.`);
}

/**
 * Uses the npm that started this task, with npm's own Node.js: `npm ci` removes the one of node_modules, which may be the one
 * that runs this. Otherwise the npm on the PATH.
 */
async function npm(...args) {
  const cli = process.env.npm_execpath;
  const [command, ...rest] = cli?.endsWith('.js') ? [process.env.npm_node_execpath ?? process.execPath, cli] : ['npm'];
  const code = await run(command, [...rest, ...args]);
  if (code > 128) throw new Failure('', code);
  if (code !== 0) throw new Failure(`npm ${args[0]} failed (exit code ${code}); its lines above say why.`);
}

/**
 * The install script of the `node` package fetches the Node.js of this platform; it is the only script that is run. Nothing
 * here compiles add-ons, whose headers are a third of that Node.js.
 */
export async function fetchNode() {
  const folder = join(ROOT, 'node_modules', 'node');
  if (!existsSync(folder)) return;
  await npm('rebuild', 'node', '--loglevel=error');
  const platform = `node-${process.platform}-${process.arch}`;
  rmSync(join(folder, 'node_modules', platform, 'include'), { recursive: true, force: true });
}

/**
 * A lock file that is newer but has the same content, as after switching branches and back, needs no installation. In
 * production, the deployment decides what is installed.
 */
function isInstallDue() {
  if (!existsSync(INSTALLED)) return true;
  if (process.env.NODE_ENV === 'production') return false;
  if (statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs) return false;
  if (!isSamePackages(packagesOf(LOCK), packagesOf(INSTALLED))) return true;
  utimesSync(INSTALLED, new Date(), new Date());
  return false;
}

function packagesOf(file) {
  const { '': _root, ...packages } = JSON.parse(readFileSync(file, 'utf8')).packages;
  return packages;
}

function isSamePackages(wanted, installed) {
  const isWanted = ([path, { version }]) => wanted[path]?.version === version;
  const mayBeMissing = ({ optional, devOptional }) => optional === true || devOptional === true;
  return (
    Object.entries(installed).every(isWanted) &&
    Object.entries(wanted).every(([path, entry]) => path in installed || mayBeMissing(entry))
  );
}
