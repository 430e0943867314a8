import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
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
  handTo(pid: number): void;
  /** Safe to repeat: a second call leaves the lock of whoever has it by then. */
  release(): void;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Called once when the lock is not free, with the pid that holds it. */
  onWait?: (pid: number) => void;
}

const POLL_MS = 200;
/** Another process may take this long for its own look at the file. */
const BUSY_MS = 5_000;
/** SQLite's codes for a damaged file and for one of another format, as of earlier versions. */
const UNREADABLE: ReadonlySet<unknown> = new Set([11, 26]);

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
export function acquireLock(file: string): LockFile {
  mkdirSync(dirname(file), { recursive: true });
  let isTakenOver = false;
  replaceOwner(file, (owner) => {
    if (owner !== undefined && isAlive(owner)) throw new LockHeldError(file, owner.pid);
    isTakenOver = owner !== undefined;
    return ownerOf(process.pid);
  });
  let isHeld = true;
  return {
    isTakenOver,
    handTo: (pid) => {
      replaceOwner(file, () => ownerOf(pid));
    },
    release: () => {
      if (!isHeld) return;
      isHeld = false;
      try {
        if (existsSync(file)) replaceOwner(file, () => undefined);
      } catch {
        // The disk may be full. An owner that has ended counts for nothing.
      }
    },
  };
}

/** Waits for the lock instead of failing at once; a LockHeldError when the time is over. */
export async function waitForLock(file: string, { timeoutMs, signal, onWait }: WaitOptions): Promise<LockFile> {
  const deadline = performance.now() + timeoutMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return acquireLock(file);
    } catch (error) {
      if (!(error instanceof LockHeldError) || performance.now() > deadline) throw error;
      if (isFirst) onWait?.(error.pid);
      await pause(POLL_MS, undefined, { signal });
    }
  }
}

/** The pid that holds `file`, or undefined where it is free. */
export function lockHolder(file: string): number | undefined {
  if (!existsSync(file)) return undefined;
  const owner = replaceOwner(file, (current) => current);
  return owner !== undefined && isAlive(owner) ? owner.pid : undefined;
}

/**
 * Puts the owner that `decide` returns in place of the current one; if it throws, that one stays. A transaction makes the
 * look and the change one step, so that of many that find a dead owner only one takes its place.
 */
function replaceOwner(file: string, decide: (owner: Owner | undefined) => Owner | undefined): Owner | undefined {
  const db = new DatabaseSync(file, { timeout: BUSY_MS });
  try {
    db.exec('BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS owner (pid INTEGER, startedAt TEXT)');
    // The columns of the table.
    const current = db.prepare('SELECT pid, startedAt FROM owner').get() as Owner | undefined;
    const next = decide(current);
    if (next !== current) {
      db.exec('DELETE FROM owner');
      if (next !== undefined) db.prepare('INSERT INTO owner VALUES (?, ?)').run(next.pid, next.startedAt);
    }
    db.exec('COMMIT');
    return next;
  } catch (error) {
    if (!(error instanceof Error && 'errcode' in error && UNREADABLE.has(error.errcode))) throw error;
    throw new Error(`${file} cannot be read; end what uses its folder, and remove it`, { cause: error });
  } finally {
    db.close();
  }
}

const ownerOf = (pid: number): Owner => ({ pid, startedAt: startTimeOf(pid) });

function isAlive({ pid, startedAt }: Owner): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  return startTimeOf(pid) === startedAt;
}

/** Field 22 of /proc/PID/stat; '' where there is no /proc or the process has ended and waits for its parent. */
function startTimeOf(pid: number): string {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return '';
  }
  // The second field is the program's name in brackets and may itself hold spaces and brackets.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? '' : (fields[18] ?? '');
}
