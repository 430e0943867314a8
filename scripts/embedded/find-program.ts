import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The variables that a child process gets; absent: those of this process. */
export type Environment = Record<string, string | undefined>;

/** The whole path of a program on the PATH of `env`, or undefined. The shell looks it up, as it would for a user. */
export async function findProgram(name: string, env?: Environment): Promise<string | undefined> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', name], env === undefined ? {} : { env });
    return stdout.trim() === '' ? undefined : stdout.trim();
  } catch {
    return undefined;
  }
}
