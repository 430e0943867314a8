import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { findProgram } from '../../../scripts/embedded/find-program.ts';
import { startMongo } from '../../../scripts/embedded/mongo.ts';
import { downloadMongod } from '../../../scripts/embedded/mongod-binary.ts';
import { startRedis } from '../../../scripts/embedded/redis.ts';
import { runStep } from '../../../scripts/embedded/run-step.ts';
import { installSystemPackages } from '../../../scripts/embedded/system-package.ts';
import { isRunning, makeFolder, writeProgram } from '../../support/temporary-folder.ts';
import { waitUntil } from '../../support/wait-for.ts';

const PACKAGES = { apt: ['redis-server'], apk: ['redis'], dnf: ['redis'] };

/** A machine with nothing on its PATH but what the test puts there. */
let folder: Awaited<ReturnType<typeof makeFolder>>;
let bin: string;
let env: { PATH: string; HOME: string };
let lines: string[];
const log = (line: string) => {
  lines.push(line);
};

beforeEach(async () => {
  folder = await makeFolder();
  bin = join(folder.path, 'bin');
  await mkdir(bin);
  env = { PATH: bin, HOME: folder.path };
  lines = [];
});
afterEach(() => folder.remove());

const callsOf = async (name: string) => (await readFile(join(folder.path, name), 'utf8')).trim().split('\n');

describe('a program', () => {
  it('is found on the PATH that is given, and nowhere else', async () => {
    expect(await findProgram('sh', env)).toBeUndefined();
    await writeProgram(bin, 'sh-of-the-test', 'exit 0');
    expect(await findProgram('sh-of-the-test', env)).toBe(join(bin, 'sh-of-the-test'));
    expect(await findProgram('sh')).toMatch(/\/sh$/);
  });
});

describe('a system package', () => {
  it('a system package is not tried by a user who is not root', async () => {
    await writeProgram(bin, 'apt-get', `echo "$@" >> ${folder.path}/apt-calls`);
    const failure = await installSystemPackages({ packages: PACKAGES, log, env, isRoot: false });
    expect(failure).toContain('only root');
    await expect(callsOf('apt-calls')).rejects.toThrow('ENOENT');
  });

  it('is installed by apt-get after an update, without questions', async () => {
    await writeProgram(bin, 'apt-get', `echo "$DEBIAN_FRONTEND $*" >> ${folder.path}/apt-calls; echo "Setting up x"`);
    const failure = await installSystemPackages({ packages: PACKAGES, log, env, isRoot: true });
    expect(failure).toBeUndefined();
    const [update, install] = await callsOf('apt-calls');
    expect(update).toMatch(/^noninteractive .* update$/);
    expect(install).toMatch(/^noninteractive .*-y.* install .*redis-server$/);
    expect(lines).toContain('apt-get install: Setting up x');
  });

  it('is installed even where the update fails in part', async () => {
    await writeProgram(bin, 'apt-get', 'case "$*" in *update) exit 100;; esac');
    expect(await installSystemPackages({ packages: PACKAGES, log, env, isRoot: true })).toBeUndefined();
  });

  it.each([
    ['apk', 'add redis'],
    ['dnf', 'install -y redis'],
    ['yum', 'install -y redis'],
  ])('is installed by %s where that is the package manager', async (manager, call) => {
    await writeProgram(bin, manager, `echo "$@" >> ${folder.path}/calls`);
    expect(await installSystemPackages({ packages: PACKAGES, log, env, isRoot: true })).toBeUndefined();
    expect(await callsOf('calls')).toEqual([call]);
  });

  it('that cannot be installed is told with the last line of the package manager', async () => {
    await writeProgram(bin, 'apt-get', 'echo "E: Unable to locate package redis-server"; exit 100');
    const failure = await installSystemPackages({ packages: PACKAGES, log, env, isRoot: true });
    expect(failure).toContain('exit code 100: E: Unable to locate package redis-server');
  });
});

describe('a long step', () => {
  const stepOf = (script: string) => ({ title: 'step', command: '/bin/sh', args: ['-c', script], log });

  it('logs the lines that show its progress, and no others', async () => {
    const result = await runStep({
      ...stepOf('echo Get:1; echo noise; echo Get:2 >&2'),
      progress: /^Get:/,
      timeoutMs: 5_000,
    });
    expect(result.ok).toBe(true);
    expect(lines.toSorted()).toEqual(['step: Get:1', 'step: Get:2']);
  });

  it('that says nothing is ended with everything that it has started', async () => {
    const result = await runStep({ ...stepOf('/bin/sleep 60 & echo $!; wait'), timeoutMs: 60_000, silenceMs: 300 });
    expect(result).toMatchObject({ ok: false, reason: 'no answer for 0 s' });
    await waitUntil(() => !isRunning(Number(result.lines[0])), 'the end of the process', 10_000);
  });

  it('a long step is ended when the start is interrupted', async () => {
    const abort = new AbortController();
    const running = runStep({
      ...stepOf('echo started; exec /bin/sleep 60'),
      progress: /started/,
      timeoutMs: 60_000,
      signal: abort.signal,
    });
    await waitUntil(() => lines.length > 0, 'a first line', 10_000);
    abort.abort();
    await expect(running).rejects.toThrow('aborted');
  });
});

describe('a machine without the servers', () => {
  it('is told in one sentence how to get Redis', async () => {
    await expect(startRedis({ dataDir: folder.path, log, env })).rejects.toThrow(
      /^Redis: redis-server is not on the PATH and .*: install it .* or set REDIS_URL to a Redis that runs\.$/,
    );
  });

  it('gets Redis by its package manager, where it is root', async () => {
    if (process.getuid?.() !== 0) return;
    const real = await findProgram('redis-server');
    await writeProgram(bin, 'apt-get', `case "$*" in *install*) /bin/ln -s ${real ?? ''} ${bin}/redis-server;; esac`);
    const redis = await startRedis({ dataDir: folder.path, log, env });
    await redis.stop();
    expect(redis.describe).toContain(join(bin, 'redis-server'));
  });

  it('passes over a download that failed less than a day ago', async () => {
    const cacheDir = join(folder.path, 'cache');
    const options = { cacheDir, log, env: { ...env, MONGOMS_RUNTIME_DOWNLOAD: 'false' } };
    const first = await downloadMongod(options);
    expect(first).toEqual({ reason: expect.stringContaining('its download failed (') });
    lines = [];
    const second = await downloadMongod(options);
    expect(second).toEqual({ reason: expect.stringMatching(/failed at .*delete .* to try again/) });
    expect(lines).toEqual([]);
  });

  it('is told every reason why no MongoDB could be started', async () => {
    const emptyEnv = { ...env, MONGOMS_RUNTIME_DOWNLOAD: 'false' };
    await expect(startMongo({ dataDir: folder.path, log, env: emptyEnv })).rejects.toThrow(
      /mongod is not on the PATH; its download failed .*; SecantusDB needs Python 3\.10 .*MONGODB_URI/s,
    );
    expect(lines.filter((line) => line.startsWith('MongoDB: not '))).toHaveLength(3);
  });
});
