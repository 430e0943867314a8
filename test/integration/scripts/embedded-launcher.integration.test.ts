import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { isRunning, makeFolder, writeProgram } from '../../support/temporary-folder.ts';
import { waitUntil } from '../../support/wait-for.ts';

const SCRIPTS = join(import.meta.dirname, '..', '..', '..', 'scripts');
const LATER = new Date(Date.now() + 60_000);

/** A clone of its own, with an `npm` and a `node` that only note what they are asked. */
let clone: Awaited<ReturnType<typeof makeFolder>>;
let temporary: string;

beforeEach(async () => {
  clone = await makeFolder();
  temporary = tmpdir();
  await mkdir(join(clone.path, 'scripts', 'launch'), { recursive: true });
  await mkdir(join(clone.path, 'bin'));
  for (const file of ['launch.mjs', 'task-arguments.mjs', 'launch/run-program.mjs', 'launch/install-packages.mjs'])
    await copyFile(join(SCRIPTS, file), join(clone.path, 'scripts', file));
  await writeLock('package-lock.json', { '': {}, 'node_modules/a': { version: '1.0.0' } });
  await writeProgram(
    join(clone.path, 'bin'),
    'npm',
    `echo "npm $*" >> calls; exec ${join(clone.path, 'bin', 'install')}`,
  );
  await writeProgram(
    join(clone.path, 'bin'),
    'install',
    'mkdir -p node_modules; echo {} > node_modules/.package-lock.json',
  );
});
afterEach(() => clone.remove());

async function writeLock(name: string, packages: Record<string, object>): Promise<void> {
  await writeFile(join(clone.path, name), JSON.stringify({ packages }));
}

async function writeInstalled(packages: Record<string, object>): Promise<void> {
  await mkdir(join(clone.path, 'node_modules', '.bin'), { recursive: true });
  await writeLock('node_modules/.package-lock.json', packages);
  await writeProgram(join(clone.path, 'node_modules', '.bin'), 'node', 'echo "node $*" >> calls; exec /bin/sh ./task');
  await writeFile(join(clone.path, 'task'), 'exit 7');
}

function launch(...args: string[]) {
  return spawn(process.execPath, [join(clone.path, 'scripts', 'launch.mjs'), ...args], {
    cwd: clone.path,
    env: { PATH: `${join(clone.path, 'bin')}:${process.env['PATH'] ?? ''}`, TMPDIR: temporary },
  });
}

async function run(...args: string[]): Promise<{ code: number; output: string }> {
  const child = launch(...args);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (output += part.toString()));
  // The arguments of this event.
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

const calls = async () => (await readFile(join(clone.path, 'calls'), 'utf8').catch(() => '')).trim().split('\n');

describe('the launcher', () => {
  it('installs the packages of a clone that has none, and says so', async () => {
    const { output } = await run('start');
    expect((await calls())[0]).toMatch(/^npm ci /);
    expect(output).toContain('Installing the packages of package-lock.json (npm ci)');
    expect(output).toMatch(/Installed the packages in \d+ s\./);
  });

  it('installs nothing when the installation is newer than the lock file', async () => {
    await writeInstalled({});
    expect((await run('drive')).output).toBe('');
    expect(await calls()).toEqual(['node --disable-warning=ExperimentalWarning scripts/drive/main.ts']);
  });

  it('installs again when the lock file is newer and asks for something else', async () => {
    await writeInstalled({ 'node_modules/a': { version: '0.9.0' } });
    await utimes(join(clone.path, 'package-lock.json'), LATER, LATER);
    await run('start');
    expect((await calls())[0]).toMatch(/^npm ci /);
  });

  it('installs nothing when the lock file is newer but says the same', async () => {
    await writeInstalled({ 'node_modules/a': { version: '1.0.0' } });
    await utimes(join(clone.path, 'package-lock.json'), LATER, LATER);
    await run('start');
    expect((await calls())[0]).toMatch(/^node /);
  });

  it('installs once when two tasks are started at the same time', async () => {
    await writeProgram(
      join(clone.path, 'bin'),
      'install',
      'sleep 0.5; mkdir -p node_modules; echo {} > node_modules/.package-lock.json',
    );
    const results = await Promise.all([run('start'), run('drive')]);
    expect((await calls()).filter((call) => call.startsWith('npm'))).toHaveLength(1);
    expect(results.map(({ output }) => output.includes('Waiting for process ')).toSorted()).toEqual([false, true]);
  });

  it('takes over from an installation that could not even say who it is, as on a full disk', async () => {
    temporary = clone.path;
    const digest = createHash('sha256').update(clone.path).digest('hex').slice(0, 16);
    const claim = join(clone.path, `parley-install-${process.getuid?.() ?? 'all'}-${digest}`);
    await writeFile(claim, '');
    await utimes(claim, 0, 0);
    expect((await run('start')).output).not.toContain('Waiting');
    expect((await calls())[0]).toMatch(/^npm ci /);
  });

  it('says what to change where it can write nothing beside the clone', async () => {
    temporary = '/nonexistent';
    const { code, output } = await run('start');
    expect({ code, output }).toEqual({
      code: 1,
      output: expect.stringMatching(/^\S+ cannot be written \(ENOENT\).*TMPDIR.*\n$/),
    });
  });

  it('ends with the npm that has started it, whose shell passes no SIGTERM on', async () => {
    await writeInstalled({});
    await writeFile(
      join(clone.path, 'task'),
      'trap "echo told >> calls; exit 0" TERM; echo up >> calls; while :; do sleep 0.05; done',
    );
    const npm = spawn('/bin/sh', ['-c', `${process.execPath} scripts/launch.mjs drive; true`], {
      cwd: clone.path,
      env: { PATH: process.env['PATH'] ?? '', npm_lifecycle_script: 'node scripts/launch.mjs drive' },
    });
    await waitUntil(async () => (await calls()).includes('up'), 'the first start', 10_000);
    npm.kill('SIGTERM');
    await waitUntil(async () => (await calls()).includes('told'), 'the message', 10_000);
    expect((await calls()).filter((line) => line === 'told')).toHaveLength(1);
  });

  it('keeps the npm of a service until the service has ended, as a supervisor waits for npm alone', async () => {
    await writeInstalled({});
    await copyFile(join(SCRIPTS, '..', 'package.json'), join(clone.path, 'package.json'));
    await writeFile(
      join(clone.path, 'task'),
      'trap "sleep 2; echo ended >> calls; exit 0" TERM; echo up >> calls; while :; do sleep 0.05; done',
    );
    const npm = spawn('npm', ['run', 'start:worker'], { cwd: clone.path, env: { PATH: process.env['PATH'] ?? '' } });
    await waitUntil(async () => (await calls()).includes('up'), 'the first start', 10_000);
    npm.kill('SIGTERM');
    await once(npm, 'exit');
    expect((await calls()).filter((line) => line === 'ended')).toHaveLength(1);
  });

  it('ends with a sentence when the installation fails', async () => {
    await writeProgram(join(clone.path, 'bin'), 'install', 'exit 5');
    const { code, output } = await run('start');
    expect(code).toBe(1);
    expect(output).toContain('npm ci failed (exit code 5)');
    expect(output).not.toContain('    at ');
  });

  it('hands its arguments to the task and the exit code to its caller', async () => {
    await writeInstalled({});
    const { code } = await run('drive', 'file with spaces.jsonl', '--stream');
    expect(code).toBe(7);
    expect(await calls()).toEqual([
      'node --disable-warning=ExperimentalWarning scripts/drive/main.ts file with spaces.jsonl --stream',
    ]);
  });

  it('stops at the first check that fails and names it', async () => {
    await writeInstalled({});
    for (const tool of ['prettier', 'eslint', 'tsc', 'knip', 'jest']) {
      await writeProgram(join(clone.path, 'node_modules', '.bin'), tool, '');
    }
    for (const folder of ['api', 'shared']) await mkdir(join(clone.path, folder));
    await writeFile(join(clone.path, 'task'), 'test "$(grep -c "" calls)" -lt 3');
    const { code, output } = await run('check');
    expect(code).toBe(1);
    const steps = (await calls()).map((call) => call.replace(/^.*(?:\.bin|scripts)\//, ''));
    expect(steps).toEqual(['config-docs.ts types', 'prettier --check .', 'eslint .']);
    expect(output).toContain('check: failed at eslint .');
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('passes %s on once, and waits for the task to end', async (signal) => {
    await writeInstalled({});
    await writeFile(
      join(clone.path, 'task'),
      'trap "echo caught >> calls; exit 0" INT TERM\necho $$ >> calls\nwhile :; do sleep 0.05; done',
    );
    const child = launch('start');
    await waitUntil(async () => (await calls()).length === 2, 'both starts', 10_000);
    const pid = Number((await calls())[1]);
    // A terminal's Ctrl-C comes twice: from the terminal, and passed on by npm.
    child.kill(signal);
    child.kill(signal);
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(0);
    expect((await calls()).slice(2)).toEqual(['caught']);
    expect(isRunning(pid)).toBe(false);
  });

  it('names the tasks when it does not know the one that is asked for', async () => {
    const { code, output } = await run('constructor');
    expect(code).toBe(1);
    expect(output).toContain('Unknown task "constructor": one of start, dev, start:api');
  });
});
