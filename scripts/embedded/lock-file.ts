import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

interface Owner {
  pid: number;
  /** When that process began, in the kernel's own count: after a restart of the machine the pid may be another's. */
  startedAt: string;
}

export interface LockFile {
  /** Its owner before had ended without releasing it. */
  isTakenOver: boolean;
  /** Makes another process the owner, without a moment in which the lock is free. */
  handTo(pid: number): Promise<void>;
  /** Safe to repeat: a second call leaves the lock of whoever has it by then. */
  release(): Promise<void>;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Called once when the lock is not free, with the pid that holds it. */
  onWait?: (pid: number) => void;
}

const POLL_MS = 200;
const TOKEN_POLL_MS = 5;

export class LockHeldError extends Error {
  override readonly name = 'LockHeldError';
  readonly pid: number;

  constructor(file: string, pid: number) {
    super(`${file} is held by process ${pid}`);
    this.pid = pid;
  }
}

/**
 * Claims `file` for this process; a LockHeldError where another one has it. The claim of a process that has ended counts
 * for nothing.
 */
export async function acquireLock(file: string): Promise<LockFile> {
  await mkdir(dirname(file), { recursive: true });
  const own = await writeOwner(file, process.pid);
  let isTakenOver: boolean;
  try {
    isTakenOver = await claim(file, own);
  } finally {
    await unlink(own);
  }
  let isHeld = true;
  return {
    isTakenOver,
    handTo: async (pid) => {
      await rename(await writeOwner(file, pid), file);
    },
    release: async () => {
      if (!isHeld) return;
      isHeld = false;
      await rm(file, { force: true });
    },
  };
}

/** True: a dead owner had it. */
async function claim(file: string, own: string): Promise<boolean> {
  for (;;) {
    // `link` fails where the name exists, so a reader never sees a lock that is half written.
    if (await linkUnlessExists(own, file)) return false;
    if (await replaceStale(file, own)) return true;
  }
}

/** Waits for the lock instead of failing at once; a LockHeldError when the time is over. */
export async function waitForLock(file: string, { timeoutMs, signal, onWait }: WaitOptions): Promise<LockFile> {
  const deadline = performance.now() + timeoutMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await acquireLock(file);
    } catch (error) {
      if (!(error instanceof LockHeldError) || performance.now() > deadline) throw error;
      if (isFirst) onWait?.(error.pid);
      await pause(POLL_MS, undefined, signal === undefined ? {} : { signal });
    }
  }
}

async function writeOwner(file: string, pid: number): Promise<string> {
  const name = `${file}.${randomUUID()}`;
  const owner: Owner = { pid, startedAt: await startTimeOf(pid) };
  await writeFile(name, JSON.stringify(owner));
  return name;
}

/** The pid that holds `file`, or undefined where it is free. */
export async function lockHolder(file: string): Promise<number | undefined> {
  const owner = parseOwner((await readIfExists(file)) ?? '');
  return owner !== undefined && (await isAlive(owner)) ? owner.pid : undefined;
}

async function linkUnlessExists(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/**
 * Replaces the lock of a dead owner by `own`; false where the caller has to look again. Of all that saw the same dead
 * owner only the one with the token, which is named after that lock's content, may replace it: whoever comes later finds
 * another content.
 */
async function replaceStale(file: string, own: string): Promise<boolean> {
  const content = await readIfExists(file);
  if (content === undefined) return false;
  const holder = await lockHolder(file);
  if (holder !== undefined) throw new LockHeldError(file, holder);
  const token = `${file}.${createHash('sha256').update(content).digest('hex').slice(0, 16)}`;
  if (!(await linkUnlessExists(own, token))) {
    if ((await lockHolder(token)) === undefined) await rm(token, { force: true });
    await pause(TOKEN_POLL_MS);
    return false;
  }
  try {
    if ((await readIfExists(file)) !== content) return false;
    await copyOver(own, file);
    return true;
  } finally {
    await rm(token, { force: true });
  }
}

/** In one step, and `from` stays. */
async function copyOver(from: string, to: string): Promise<void> {
  const copy = `${from}.copy`;
  await link(from, copy);
  await rename(copy, to);
}

async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ESRCH')) return undefined;
    throw error;
  }
}

function parseOwner(text: string): Owner | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || !('startedAt' in value)) return undefined;
    return typeof value.pid === 'number' && typeof value.startedAt === 'string'
      ? { pid: value.pid, startedAt: value.startedAt }
      : undefined;
  } catch {
    return undefined;
  }
}

async function isAlive(owner: Owner): Promise<boolean> {
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    return isCode(error, 'EPERM');
  }
  return (await startTimeOf(owner.pid)) === owner.startedAt;
}

/** Field 22 of /proc/PID/stat; '' where there is no /proc or the process has ended and waits for its parent. */
async function startTimeOf(pid: number): Promise<string> {
  const stat = (await readIfExists(`/proc/${pid}/stat`)) ?? '';
  // The second field is the program's name in brackets and may itself hold spaces and brackets.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? '' : (fields[18] ?? '');
}

function isCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
