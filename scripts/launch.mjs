/**
 * Runs the tasks of package.json: `node scripts/launch.mjs TASK [ARGUMENTS]`.
 *
 * Plain JavaScript without dependencies, for Node.js 20 and up: it installs the packages if that is due, then runs
 * the task with the Node.js of the `node` package (24), which runs TypeScript directly.
 */
import { cpSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { fetchNode, installIfDue } from './launch/install-packages.mjs';
import { BIN, Failure, ROOT, followSignals, run } from './launch/run-program.mjs';
import { answerArguments, isHelp } from './task-arguments.mjs';

const PACKAGED_NODE = join(BIN, 'node');

/** The oldest Node.js that can run this warns that type stripping is experimental. */
const QUIET = '--disable-warning=ExperimentalWarning';
/** The same as in scripts/harness/program.ts, which explains them; this file cannot import TypeScript. */
const SERVICE_OPTIONS = ['--max-semi-space-size=16'];
const SERVICE_ENV = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };
const SOURCES = ['api', 'workers', 'shared'];
/** The files that the program reads besides its code: Redis scripts, and the phrases of the local moderation. */
const DATA = ['.lua', '.txt'];

const TASKS = {
  start: async (args) => (await buildConsoleIfDue(args)) || script('scripts/start.ts', args, { isOwner: true }),
  dev: async (args) =>
    (await buildConsoleIfDue(args)) || script('scripts/start.ts', ['--watch', ...args], { isOwner: true }),
  'start:api': (args) => service('api/main', args),
  'start:worker': (args) => service('workers/main', args),
  'provider:simulated': (args) => service('scripts/simulated-provider/main', args),
  test: (args) => script('scripts/test.ts', args),
  'test:clients': (args) => script('scripts/test.ts', ['--config', 'jest.clients.config.js', ...args]),
  'test:console': async (args) =>
    (await buildConsoleIfDue(args)) || script('scripts/test.ts', ['--config', 'jest.console.config.js', ...args]),
  'test:providers': (args) => script('scripts/test-providers.ts', args),
  // The build is measured because users deploy it: compiled code takes less memory than sources that Node.js strips.
  bench: async (args) => (!isHelp(args) && (await build(['--noCheck']))) || script('scripts/bench.ts', args),
  'test:fault': (args) => script('test/fault/main.ts', args),
  'test:restore': (args) => script('test/fault/main.ts', ['R5', ...args]),
  'test:upgrade': (args) => script('test/upgrade/main.ts', args),
  'test:scale': (args) => script('test/fault/main.ts', ['S1', 'S2', ...args]),
  parley: (args) => service('scripts/parley', args),
  reconcile: (args) => script('scripts/reconcile.ts', args),
  citations: (args) => script('scripts/check-citations.ts', args),
  house: (args) => script('scripts/house.ts', args),
  'config-docs': (args) => script('scripts/config-docs.ts', args),
  drive: (args) => script('scripts/drive/main.ts', args),
  sbom: (args) => script('scripts/packages/main.ts', ['sbom', ...args]),
  audit: () => script('scripts/packages/main.ts', ['audit']),
  build: async (args) => (await typesIfDue()) || (await build(args)) || buildConsole(),
  types: typesIfDue,
  check,
};

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 19);
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

/** In production, runs the output of `npm run build` if it exists. */
function service(name, args) {
  const built = join('dist', `${name}.js`);
  const isBuilt = process.env.NODE_ENV === 'production' && existsSync(join(ROOT, built));
  return script(isBuilt ? built : `${name}.ts`, args, { nodeArgs: SERVICE_OPTIONS, env: SERVICE_ENV });
}

/** The console's own build, for browsers (docs/decisions/0025-toolchain.md). */
const buildConsole = () => script('console/build.ts', []);

/** Where only production's packages are installed, the console is what `npm run build` has made, or is not there. */
async function buildConsoleIfDue(args) {
  if (isHelp(args) || !existsSync(join(BIN, 'esbuild')) || isFresh('console/dist/index.html', 'console', 'scripts'))
    return 0;
  return buildConsole();
}

/** The types of both APIs, for `parley` and the console: the compiler and ESLint need them, the programs do not. */
async function typesIfDue() {
  const isDue = !['scripts/admin-api.d.ts', 'console/public-api.d.ts'].every((made) =>
    isFresh(made, 'api', 'shared', 'scripts'),
  );
  return isDue ? script('scripts/config-docs.ts', ['types']) : 0;
}

/** Whether a generated file is at least as new as all that these folders hold. */
function isFresh(made, ...folders) {
  const changed = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true })
      .filter((file) => !/^dist|\.d\.ts$/.test(file))
      .map((file) => statSync(join(ROOT, folder, file)).mtimeMs),
  );
  return existsSync(join(ROOT, made)) && statSync(join(ROOT, made)).mtimeMs >= Math.max(...changed);
}

async function build(args) {
  rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
  const code = await run(findNode(), [tool('tsc'), '-p', 'tsconfig.build.json', ...args]);
  if (code !== 0) return code;
  const isData = (file) => statSync(file).isDirectory() || DATA.some((ending) => file.endsWith(ending));
  for (const folder of SOURCES)
    cpSync(join(ROOT, folder), join(ROOT, 'dist', folder), { recursive: true, filter: isData });
  console.log('Built dist/ (with the Lua scripts and phrase lists).');
  return 0;
}

async function check() {
  const tools = [
    ['prettier', '--check', '.'],
    ['eslint', '.'],
    ['tsc', '--noEmit'],
    ['tsc', '--noEmit', '-p', 'console'],
    ['knip', '--no-progress'],
    ['jest', '--selectProjects', 'unit'],
  ];
  const options = { env: { NODE_OPTIONS: QUIET } };
  const steps = [
    ['types', typesIfDue],
    ...tools.map(([name, ...args]) => [
      [name, ...args].join(' '),
      () => run(findNode(), [tool(name), ...args], options),
    ]),
    ...['check-citations', 'house'].map((name) => [name, () => script(`scripts/${name}.ts`, [])]),
    ['audit', TASKS.audit],
  ];
  for (const [title, step] of steps) {
    console.log(`\ncheck: ${title}`);
    const code = await step();
    if (code === 0) continue;
    console.error(`check: failed at ${title}`);
    return code;
  }
  console.log('\ncheck: all passed');
  return 0;
}

async function main([name, ...args]) {
  const task = Object.hasOwn(TASKS, name ?? '') ? TASKS[name] : undefined;
  if (task === undefined) throw new Failure(`Unknown task "${name ?? ''}": one of ${Object.keys(TASKS).join(', ')}.`);
  const answered = answerArguments(name, args);
  if (answered !== undefined) return answered;
  await installIfDue();
  // The installation may have been interrupted before this step, or run by hand without scripts.
  if (!existsSync(PACKAGED_NODE) && !isNewEnough()) await fetchNode();
  return task(args);
}

followSignals();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  if (error.message !== '') console.error(error.message);
  process.exitCode = error.exitCode;
}
