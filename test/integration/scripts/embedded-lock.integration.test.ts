import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { acquireLock, lockHolder, waitForLock } from '../../../scripts/embedded/lock-file.ts';
import { ROOT } from '../../../scripts/harness/program.ts';
import { makeFolder } from '../../support/temporary-folder.ts';

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder();
});
afterAll(() => folder.remove());

/** Above the highest that a system gives. */
const PID_OF_NOBODY = 2 ** 30;

describe('a lock file', () => {
  it('names the process that has it, until that process releases it', () => {
    const file = join(folder.path, 'deep', 'a.lock');
    const lock = acquireLock(file);
    expect(lock.isTakenOver).toBe(false);
    expect(() => acquireLock(file)).toThrow(expect.objectContaining({ name: 'LockHeldError', pid: process.pid }));
    expect(lockHolder(file)).toBe(process.pid);
    lock.release();
    expect(lockHolder(file)).toBeUndefined();
    acquireLock(file).release();
  });

  it('of a process that has ended counts for nothing', () => {
    const file = join(folder.path, 'ended.lock');
    acquireLock(file).handTo(PID_OF_NOBODY);
    const lock = acquireLock(file);
    expect(lockHolder(file)).toBe(process.pid);
    expect(lock.isTakenOver).toBe(true);
    lock.release();
  });

  it('of an earlier process counts for nothing when its pid belongs to another one by then', () => {
    const file = join(folder.path, 'reused.lock');
    acquireLock(file).handTo(process.pid);
    const db = new DatabaseSync(file);
    db.exec("UPDATE owner SET startedAt = '1'");
    db.close();
    // Without /proc a pid cannot be told from an earlier process's.
    expect(lockHolder(file)).toBe(process.platform === 'linux' ? undefined : process.pid);
  });

  it("that is empty counts for nothing; one of another format is nobody's to take", async () => {
    const file = join(folder.path, 'foreign.lock');
    await writeFile(file, '');
    acquireLock(file).release();
    await writeFile(file, '{"pid":1,"startedAt":""}');
    for (const act of [acquireLock, lockHolder])
      expect(() => act(file)).toThrow(`${file} cannot be read; end what uses its folder, and remove it`);
  });

  it('left by a dead process goes to exactly one of many that want it at once', async () => {
    const file = join(folder.path, 'contended.lock');
    acquireLock(file).handTo(PID_OF_NOBODY);
    const claim = `
      import { acquireLock } from ${JSON.stringify(join(ROOT, 'scripts/embedded/lock-file.ts'))};
      acquireLock(${JSON.stringify(file)});
      console.log('held');
      await new Promise((resolve) => process.stdin.once('data', resolve));`;
    const claimants = Array.from({ length: 5 }, () => spawn(process.execPath, ['--input-type=module', '-e', claim]));
    const outcomes = claimants.map((claimant) =>
      Promise.race([once(claimant.stdout, 'data').then(() => 'held'), once(claimant, 'exit').then(([code]) => code)]),
    );
    expect((await Promise.all(outcomes)).toSorted()).toEqual([1, 1, 1, 1, 'held']);
    for (const claimant of claimants) claimant.kill();
  });

  it('belongs to the process that it was handed to', async () => {
    const file = join(folder.path, 'handed.lock');
    const child = spawn('/bin/sh', ['-c', 'read -r _'], { stdio: ['pipe', 'ignore', 'ignore'] });
    acquireLock(file).handTo(child.pid ?? 0);
    expect(lockHolder(file)).toBe(child.pid);
    const waiting = waitForLock(file, { timeoutMs: 10_000, onWait: () => child.stdin.end() });
    (await waiting).release();
    expect(child.exitCode).toBe(1);
  });

  it('released twice leaves the lock of whoever has taken it in between', () => {
    const file = join(folder.path, 'twice.lock');
    const first = acquireLock(file);
    first.release();
    const second = acquireLock(file);
    first.release();
    expect(lockHolder(file)).toBe(process.pid);
    second.release();
  });
});
