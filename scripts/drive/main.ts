/** `npm run drive -- FILE.jsonl`: sends conversations through a running service (scripts/drive/options.ts). */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { drive } from './drive-and-verify.ts';
import type { Drive } from './drive-and-verify.ts';
import { parseDriveArguments, USAGE } from './options.ts';
import type { DriveArguments } from './options.ts';
import { parseConversations } from './read-conversations.ts';
import { createAdminApi } from '../harness/admin-api.ts';
import { readArguments } from '../harness/read-arguments.ts';
import { loadState } from '../start/state.ts';
import type { StartState } from '../start/state.ts';

const INTERRUPTED = 130;

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

/** npm runs scripts in the project's folder, but a path on the command line is relative to the user's folder. */
const fromUser = (path: string) => resolve(process.env['INIT_CWD'] ?? '.', path);

async function readConversations(file: string, limit: number) {
  const text = await readFile(fromUser(file), 'utf8').catch((cause: unknown) => {
    throw new Error(`${file} cannot be read (${cause instanceof Error ? cause.message : String(cause)}).`, { cause });
  });
  try {
    return parseConversations(text).slice(0, limit);
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** What `npm start` has stored for its user: the demo tenant's live key, and the administrator's token. */
function fromStart(): Promise<StartState> {
  return loadState(join(process.env['DATA_DIR'] ?? '.data', 'start.json'));
}

async function keyOf({ key }: DriveArguments): Promise<string> {
  const known = key ?? (await fromStart()).liveKey?.value;
  if (known !== undefined) return known;
  throw new Error('There is no key: name one with --key, or run npm start, which makes one.');
}

async function accountOf({ adminUrl, adminToken, tenant, key }: DriveArguments): Promise<Drive['account']> {
  if (adminUrl === undefined) return undefined;
  const state = await fromStart();
  return {
    admin: createAdminApi(adminUrl, adminToken ?? state.adminToken),
    tenantId: tenant ?? (key === undefined ? state.tenantId : undefined),
  };
}

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), parseDriveArguments);
  if ('exitCode' in read) return read.exitCode;
  const { options: args } = read;
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(INTERRUPTED);
      stopping.abort();
    });
  }
  const report = await drive({
    conversations: await readConversations(args.file, args.limit),
    url: args.url,
    key: await keyOf(args),
    isStreamed: () => args.stream,
    concurrency: args.concurrency,
    model: args.model,
    account: await accountOf(args),
    providerUrl: args.providerStats,
    signal: stopping.signal,
    print,
  });
  if (args.json !== undefined) await saveReport(fromUser(args.json), report);
  if (stopping.signal.aborted) return INTERRUPTED;
  return report.passed ? 0 : 1;
}

/** Saves only figures, no texts. */
async function saveReport(file: string, { summary, records, checks }: Awaited<ReturnType<typeof drive>>) {
  const requests = records.map((record) => ({ ...record, text: undefined, submitted: undefined }));
  await writeFile(file, `${JSON.stringify({ summary, checks, requests }, undefined, 2)}\n`);
}

main()
  .then((exitCode) => {
    process.exitCode = exitCode;
  })
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
