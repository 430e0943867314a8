/**
 * Runs the tasks of package.json: `node scripts/launch.mjs TASK [ARGUMENTS]`.
 *
 * Plain JavaScript without a dependency, for Node.js 20 and up: it installs the packages where that is due, then runs
 * the task with the Node.js of the `node` package (24), which runs TypeScript directly.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { answerArguments, isHelp } from './task-arguments.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const BIN = join(ROOT, 'node_modules', '.bin');
const PACKAGED_NODE = join(BIN, 'node');
const LOCK = join(ROOT, 'package-lock.json');
/** npm writes it last, so it tells what is installed and that the installation was completed. */
const INSTALLED = join(ROOT, 'node_modules', '.package-lock.json');

/** Type stripping is experimental by name in the oldest Node.js that can run this. */
const QUIET = '--disable-warning=ExperimentalWarning';
/** The same as scripts/harness/program.ts, which says why; this file can import no TypeScript. */
const SERVICE_OPTIONS = ['--max-semi-space-size=16'];
const SERVICE_ENV = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };
const SOURCES = ['api', 'workers', 'shared'];
/** What the program reads beside its code: Redis scripts, and the phrases of the local moderation. */
const DATA = ['.lua', '.txt'];
/** What Node.js has compiled, for the next process that loads the same files: that halves the time of a start. */
const CACHE =
  process.env.NODE_ENV === 'production' ? {} : { NODE_COMPILE_CACHE: join(ROOT, '.data', 'cache', 'compiled') };

const TASKS = {
  start: (args) => script('scripts/start.ts', args, { isOwner: true }),
  dev: (args) => script('scripts/start.ts', ['--watch', ...args], { isOwner: true }),
  'start:api': (args) => service('api/main', args),
  'start:worker': (args) => service('workers/main', args),
  'provider:simulated': (args) => service('scripts/simulated-provider/main', args),
  test: (args) => script('scripts/test.ts', args),
  'test:providers': (args) => script('scripts/test-providers.ts', args),
  // What users deploy is measured: compiled code takes less memory than sources that Node.js strips.
  bench: async (args) => (!isHelp(args) && (await build(['--noCheck']))) || script('scripts/bench.ts', args),
  'test:fault': (args) => script('test/fault/main.ts', args),
  'test:restore': (args) => script('test/fault/main.ts', ['R5', ...args]),
  'test:upgrade': (args) => script('test/upgrade/main.ts', args),
  'test:scale': (args) => script('test/fault/main.ts', ['S1', 'S2', ...args]),
  reconcile: (args) => script('scripts/reconcile.ts', args),
  citations: (args) => script('scripts/check-citations.ts', args),
  drive: (args) => script('scripts/drive/main.ts', args),
  sbom: (args) => script('scripts/packages/main.ts', ['sbom', ...args]),
  audit: () => script('scripts/packages/main.ts', ['audit']),
  build,
  check,
};

/** What ends a task with a sentence (none after a signal) and without a stack trace. */
class Failure extends Error {
  constructor(sentence, exitCode = 1) {
    super(sentence);
    this.exitCode = exitCode;
  }
}

/** The child process that signals go to. */
let current;
let signalledAt = -Infinity;
/** npm passes on the Ctrl-C that the terminal has sent here already: signals this close are one key press. */
const ONE_KEY_PRESS_MS = 400;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    stop(signal);
  });
}

/** npm's shell dies of the SIGTERM that a supervisor sends to npm, and tells nobody: its orphan has to see it. */
const PARENT = process.ppid;
const PARENT_CHECK_MS = 500;
// Below other scripts of npm a parent may end that has started this for good.
if (process.env.npm_lifecycle_script?.startsWith('node scripts/launch.mjs')) {
  const check = setInterval(() => {
    if (process.ppid === PARENT) return;
    clearInterval(check);
    // After a signal of its own this would be the second one, which ends everything at once.
    if (signalledAt === -Infinity) stop('SIGTERM');
  }, PARENT_CHECK_MS).unref();
}

function stop(signal) {
  const isRepeated = performance.now() - signalledAt < ONE_KEY_PRESS_MS;
  signalledAt = performance.now();
  if (isRepeated) return;
  if (current === undefined) process.exit(128 + constants.signals[signal]);
  signalGroup(current, signal === 'SIGHUP' ? 'SIGTERM' : signal);
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended by itself in the meantime.
  }
}

/**
 * Runs a program to its end and returns its exit code. It has a process group of its own, so that a terminal's Ctrl-C
 * reaches it once, from here. With `isOwner` it also learns, by its channel's end, when this process was killed.
 */
function run(command, args, { env = {}, isOwner = false } = {}) {
  return new Promise((resolve, reject) => {
    current = spawn(command, args, {
      cwd: ROOT,
      detached: true,
      stdio: isOwner ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
      env: { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`, ...CACHE, ...env },
    });
    current.once('error', (error) => reject(new Failure(`${command} could not be run: ${error.message}.`)));
    current.once('exit', (code, signal) => {
      current = undefined;
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}

/** Two tasks that are started at once in a new clone must not install into the same folder. */
async function installIfDue() {
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

/** Undefined: the file is now this process's. Else who has it; that of a process that has ended is taken over. */
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

/** How long a file may be empty that is being written. */
const EMPTY_MS = 5_000;

function holderOf(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    if (pid === 0) return Date.now() - statSync(file).mtimeMs < EMPTY_MS ? 'unknown' : undefined;
    process.kill(pid, 0);
    return pid;
  } catch {
    // It has ended, or its number is another user's by now.
    return undefined;
  }
}

async function install() {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1000);
  console.log('Installing the packages of package-lock.json (npm ci), which takes up to a minute ...');
  const heartbeat = setInterval(() => console.log(`npm ci: still running (${seconds()} s)`), 10_000);
  try {
    // Only npm 11.16 and later read `allowScripts` of package.json: every npm is told to run no script at all, and then
    // the one that is needed.
    await npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
    await fetchNode();
  } finally {
    clearInterval(heartbeat);
  }
  console.log(`Installed the packages in ${seconds()} s.`);
}

/** The npm that has started this task, else the one on the PATH. */
async function npm(...args) {
  const cli = process.env.npm_execpath;
  const [command, ...rest] = cli?.endsWith('.js') ? [process.execPath, cli] : ['npm'];
  const code = await run(command, [...rest, ...args]);
  if (code > 128) throw new Failure('', code);
  if (code !== 0) throw new Failure(`npm ${args[0]} failed (exit code ${code}); its lines above say why.`);
}

/** The install script of the `node` package gets the Node.js of this platform; it is the one script that is run. */
async function fetchNode() {
  if (existsSync(join(ROOT, 'node_modules', 'node'))) await npm('rebuild', 'node', '--loglevel=error');
}

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 19);
}

/**
 * A lock file that is newer but says the same, as after a change of branches and back, needs no installation.
 * In production, what is installed is the deployment's choice.
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

function findNode() {
  if (existsSync(PACKAGED_NODE)) return PACKAGED_NODE;
  if (isNewEnough()) return process.execPath;
  throw new Failure(
    `Node.js 24 is missing from node_modules and this Node.js is ${process.versions.node}: run "npm ci" with its ` +
      'install scripts and development packages, or use Node.js 22.19 or newer.',
  );
}

function tool(name) {
  const path = join(BIN, name);
  if (existsSync(path)) return path;
  throw new Failure(`${name} is not installed: run "npm ci" with the development packages.`);
}

function script(file, args, { nodeArgs = [], ...options } = {}) {
  return run(findNode(), [QUIET, ...nodeArgs, file, ...args], options);
}

/** In production what `npm run build` made is run, where it was made. */
function service(name, args) {
  const built = join('dist', `${name}.js`);
  const isBuilt = process.env.NODE_ENV === 'production' && existsSync(join(ROOT, built));
  return script(isBuilt ? built : `${name}.ts`, args, { nodeArgs: SERVICE_OPTIONS, env: SERVICE_ENV });
}

async function build(args) {
  rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
  const code = await run(findNode(), [tool('tsc'), '-p', 'tsconfig.build.json', ...args]);
  if (code !== 0) return code;
  let count = 0;
  for (const folder of SOURCES) {
    for (const file of readdirSync(join(ROOT, folder), { recursive: true })) {
      if (!DATA.some((ending) => file.endsWith(ending))) continue;
      cpSync(join(ROOT, folder, file), join(ROOT, 'dist', folder, file));
      count += 1;
    }
  }
  console.log(`Built dist/ (and copied ${count} Lua scripts and phrase lists).`);
  return 0;
}

async function check() {
  const jestOptions = { env: { NODE_OPTIONS: QUIET } };
  const steps = [
    ['prettier', ['--check', '.']],
    ['eslint', ['.']],
    ['tsc', ['--noEmit']],
    ['depcruise', ['--config', '.dependency-cruiser.cjs', ...SOURCES, 'scripts', 'test']],
    ['knip', ['--no-progress']],
    ['jest', ['--selectProjects', 'unit'], jestOptions],
  ];
  for (const [name, args, options] of steps) {
    const title = `${name} ${args.join(' ')}`;
    console.log(`\ncheck: ${title}`);
    const code = await run(findNode(), [tool(name), ...args], options);
    if (code !== 0) {
      console.error(`check: failed at ${title}`);
      return code;
    }
  }
  console.log('\ncheck: citations and links');
  const code = await script('scripts/check-citations.ts', []);
  if (code !== 0) return code;
  console.log('\ncheck: audit');
  const audited = await script('scripts/packages/main.ts', ['audit']);
  if (audited !== 0) return audited;
  console.log('\ncheck: all passed');
  return 0;
}

async function main([name, ...args]) {
  const task = Object.hasOwn(TASKS, name ?? '') ? TASKS[name] : undefined;
  if (task === undefined) throw new Failure(`Unknown task "${name ?? ''}": one of ${Object.keys(TASKS).join(', ')}.`);
  const answered = answerArguments(name, args);
  if (answered !== undefined) return answered;
  await installIfDue();
  // An installation that was interrupted, or run by hand without scripts, has not got that far.
  if (!existsSync(PACKAGED_NODE) && !isNewEnough()) await fetchNode();
  return task(args);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  if (error.message !== '') console.error(error.message);
  process.exitCode = error.exitCode;
}
