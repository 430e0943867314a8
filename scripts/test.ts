/**
 * `npm test`: jest with its own stores (test/support/start-stores.ts). Arguments go to jest. Small fault experiments
 * run only if an argument names them: `npm test -- test/fault/small`, `npm test -- --selectProjects faults`.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { lockHolder } from './embedded/lock-file.ts';

const ROOT = join(import.meta.dirname, '..');
const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const STORES_END_MS = 20_000;
const POLL_MS = 100;
/**
 * Tests create many short-lived objects. With V8's default sizes, a run of 73 files took 156 and 145 s of CPU time,
 * with these 142 and 139 s; jest's child processes are started with the same sizes.
 */
const HEAP = ['--min-semi-space-size=16', '--max-semi-space-size=32'];

const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
const given = process.argv.slice(2);
const isAboutFaults = given.some((arg) => /\bfaults?\b/.test(arg));
process.exitCode = await runJest(isAboutFaults ? given : [...given, '--ignoreProjects', 'faults']);
await untilStoresEnded();
await rm(dataDir, { recursive: true, force: true });

/** Does not use `node` from the PATH: jest starts its child processes with the program that runs jest. */
function runJest(args: readonly string[]): Promise<number> {
  const nodeOptions = [process.env['NODE_OPTIONS'], '--disable-warning=ExperimentalWarning'];
  const jest = spawn(process.execPath, [...HEAP, JEST, ...args], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, NODE_OPTIONS: nodeOptions.filter(Boolean).join(' '), PARLEY_TEST_DIR: dataDir },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => jest.kill(signal));
  return new Promise((resolve) => {
    jest.once('error', (error) => {
      console.error(`jest could not be run: ${error.message}.`);
      resolve(1);
    });
    jest.once('exit', (code, signal) => {
      resolve(code ?? 128 + constants.signals[signal ?? 'SIGTERM']);
    });
  });
}

/** If jest was interrupted, there is no teardown: the servers' guards stop them, which takes a moment. */
async function untilStoresEnded(): Promise<void> {
  const deadline = performance.now() + STORES_END_MS;
  // If jest's teardown ran, it has removed the folder.
  for (const folder of await readdir(dataDir).catch(() => [])) {
    const lockFile = join(dataDir, folder, 'server.lock');
    while (lockHolder(lockFile) !== undefined && performance.now() < deadline) await pause(POLL_MS);
  }
}
