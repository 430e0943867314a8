import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A child process's variables; undefined: those of this process. */
export type Environment = Record<string, string | undefined>;

/** The full path of a program on the PATH of `env`, or undefined. Looked up by the shell, as for a user. */
export async function findProgram(name: string, env?: Environment): Promise<string | undefined> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', name], env === undefined ? {} : { env });
    return stdout.trim() === '' ? undefined : stdout.trim();
  } catch {
    return undefined;
  }
}
