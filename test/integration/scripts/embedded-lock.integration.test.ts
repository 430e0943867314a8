import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { acquireLock, lockHolder, waitForLock } from '../../../scripts/embedded/lock-file.ts';
import { makeFolder } from '../../support/temporary-folder.ts';

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder();
});
afterAll(() => folder.remove());

async function endedProcess(): Promise<number> {
  const child = spawn('/bin/sh', ['-c', 'exit 0']);
  await once(child, 'exit');
  return child.pid ?? 0;
}

describe('a lock file', () => {
  it('names the process that has it, until that process releases it', async () => {
    const file = join(folder.path, 'deep', 'a.lock');
    const lock = await acquireLock(file);
    expect(lock.isTakenOver).toBe(false);
    await expect(acquireLock(file)).rejects.toMatchObject({ name: 'LockHeldError', pid: process.pid });
    expect(await lockHolder(file)).toBe(process.pid);
    await lock.release();
    expect(await lockHolder(file)).toBeUndefined();
    await (await acquireLock(file)).release();
  });

  it('of a process that has ended counts for nothing', async () => {
    const file = join(folder.path, 'ended.lock');
    await (await acquireLock(file)).handTo(await endedProcess());
    const lock = await acquireLock(file);
    expect(await lockHolder(file)).toBe(process.pid);
    expect(lock.isTakenOver).toBe(true);
    await lock.release();
  });

  it('of an earlier process counts for nothing when its pid belongs to another one by then', async () => {
    const file = join(folder.path, 'reused.lock');
    await writeFile(file, JSON.stringify({ pid: process.pid, startedAt: '1' }));
    // Without /proc a pid cannot be told from an earlier process's.
    const expected = process.platform === 'linux' ? undefined : process.pid;
    expect(await lockHolder(file)).toBe(expected);
  });

  it.each(['', 'not JSON', '{"pid":"x"}', 'null'])(
    'a lock file that is damaged (%j) counts for nothing',
    async (content) => {
      const file = join(folder.path, 'damaged.lock');
      await writeFile(file, content);
      await (await acquireLock(file)).release();
    },
  );

  it('left by a dead process goes to exactly one of many that want it at once', async () => {
    const file = join(folder.path, 'contended.lock');
    await (await acquireLock(file)).handTo(await endedProcess());
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => acquireLock(file)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const leftovers = (await readdir(folder.path)).filter((name) => name.startsWith('contended.lock.'));
    expect(leftovers).toEqual([]);
  });

  it('belongs to the process that it was handed to', async () => {
    const file = join(folder.path, 'handed.lock');
    const child = spawn('/bin/sh', ['-c', 'read -r _'], { stdio: ['pipe', 'ignore', 'ignore'] });
    await (await acquireLock(file)).handTo(child.pid ?? 0);
    expect(await lockHolder(file)).toBe(child.pid);
    const waiting = waitForLock(file, { timeoutMs: 10_000, onWait: () => child.stdin.end() });
    await (await waiting).release();
    expect(child.exitCode).toBe(1);
  });

  it('released twice leaves the lock of whoever has taken it in between', async () => {
    const file = join(folder.path, 'twice.lock');
    const first = await acquireLock(file);
    await first.release();
    const second = await acquireLock(file);
    await first.release();
    expect(await lockHolder(file)).toBe(process.pid);
    await second.release();
  });
});
