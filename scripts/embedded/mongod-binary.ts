import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { runStep } from './run-step.ts';
import type { Log } from './run-step.ts';
import type { Environment } from './find-program.ts';

const LIBRARY = 'mongodb-memory-server-core';
/** A download over a slow network may take minutes but shows progress; a closed network shows nothing. */
const SILENCE_MS = 8_000;
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000;
const FAILURE_COUNTS_MS = 24 * 3_600_000;

export interface DownloadOptions {
  cacheDir: string;
  log: Log;
  env?: Environment | undefined;
  signal?: AbortSignal | undefined;
}

export type Found = { path: string } | { reason: string };

/** The official `mongod` from the library's cache, or else downloaded. A failed download is not repeated for a day. */
export async function downloadMongod({ cacheDir, log, env, signal }: DownloadOptions): Promise<Found> {
  const failureFile = join(cacheDir, 'mongod-download-failed.json');
  const failed = await readFailure(failureFile);
  if (failed !== undefined && Date.now() - failed.at < FAILURE_COUNTS_MS) {
    const since = new Date(failed.at).toISOString();
    return { reason: `its download failed at ${since} (${failed.reason}); delete ${failureFile} to try again now` };
  }
  if (!isInstalled()) return { reason: `${LIBRARY} is not installed (npm ci without --omit=dev installs it)` };
  log('MongoDB: looking for the official binary, and downloading it where it is not on this machine yet');
  const result = await runStep({
    title: 'MongoDB download',
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', programPath()],
    log,
    progress: /Downloading MongoDB/,
    timeoutMs: DOWNLOAD_TIMEOUT_MS,
    silenceMs: SILENCE_MS,
    env,
    signal,
  });
  const lastLine = result.lines.at(-1) ?? '';
  if (result.ok && lastLine !== '') return { path: lastLine };
  const reason = result.ok || lastLine === '' ? 'no answer' : lastLine;
  await mkdir(cacheDir, { recursive: true });
  await writeFile(failureFile, JSON.stringify({ at: Date.now(), reason }));
  return { reason: `its download failed (${reason})` };
}

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(LIBRARY);
    return true;
  } catch {
    return false;
  }
}

/** The file next to this one, in TypeScript or as `npm run build` compiled it. */
function programPath(): string {
  return fileURLToPath(new URL(`./download-mongod${extname(import.meta.url)}`, import.meta.url));
}

async function readFailure(file: string): Promise<{ at: number; reason: string } | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (typeof value !== 'object' || value === null || !('at' in value) || !('reason' in value)) return undefined;
    return typeof value.at === 'number' ? { at: value.at, reason: String(value.reason) } : undefined;
  } catch {
    return undefined;
  }
}
