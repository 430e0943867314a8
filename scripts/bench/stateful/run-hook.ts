import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A command of an adapter file; what it is told, it finds in its environment. */
export interface Hook {
  command: string;
  env: Record<string, string>;
}

const TIMEOUT_MS = 5 * 60_000;

/** Runs it in a shell; returns what it printed. Rejects with the last line of its errors. */
export async function runHook({ command, env }: Hook): Promise<string> {
  const options = { env: { ...process.env, ...env }, timeout: TIMEOUT_MS };
  try {
    return (await promisify(execFile)('/bin/sh', ['-c', command], options)).stdout;
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`The hook "${command}" failed: ${stderr.split('\n').at(-1) ?? ''}`, { cause: error });
  }
}
