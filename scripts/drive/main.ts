/** `npm run drive -- FILE.jsonl`: sends conversations through a running service. */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { CHAT_TIERS } from '../../shared/contracts/chat-request.ts';
import { createAdminApi } from '../harness/admin-api.ts';
import { readArguments, readNumber } from '../harness/read-arguments.ts';
import { loadState } from '../start/state.ts';
import { parseConversations } from './conversations.ts';
import { drive } from './drive.ts';
import type { DriveReport } from './drive.ts';

const USAGE = `npm run drive -- FILE.jsonl [--url http://127.0.0.1:8080/platform/v1] [--key KEY] [--stream]
                [--concurrency N] [--limit N] [--model mobius|oloid] [--json OUT]
                [--admin-url http://127.0.0.1:8081 --admin-token TOKEN [--tenant ID]]
                [--verify --provider-stats http://127.0.0.1:8090]`;
const INTERRUPTED = 130;
const CONCURRENCY_MAX = 1_000;

/** Throws an error of one sentence. */
function readDrive(args: string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      url: { ...text, default: 'http://127.0.0.1:8080/platform/v1' },
      key: text,
      model: text,
      stream: flag,
      json: text,
      concurrency: { ...text, default: '4' },
      limit: { ...text, default: String(Number.MAX_SAFE_INTEGER) },
      verify: flag,
      'admin-url': text,
      'admin-token': text,
      tenant: text,
      'provider-stats': text,
    },
  });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new Error('Name one file of conversations.');
  if (values.model !== undefined && !CHAT_TIERS.some((tier) => tier === values.model))
    throw new Error(`--model must be ${CHAT_TIERS.join(' or ')}, not "${values.model}".`);
  if (values.verify && (values['admin-url'] === undefined || values['provider-stats'] === undefined))
    throw new Error('--verify needs --admin-url and --provider-stats as well.');
  for (const name of ['url', 'admin-url', 'provider-stats'] as const)
    if (values[name] !== undefined && URL.parse(values[name])?.protocol.startsWith('http') !== true)
      throw new Error(`--${name} must be an http or https URL, not "${values[name]}".`);
  return {
    ...values,
    file,
    url: values.url.replace(/\/+$/, ''),
    adminUrl: values['admin-url']?.replace(/\/+$/, ''),
    providerUrl: values.verify ? values['provider-stats'] : undefined,
    concurrency: readNumber('concurrency', values.concurrency, CONCURRENCY_MAX),
    limit: readNumber('limit', values.limit, Number.MAX_SAFE_INTEGER),
  };
}

/** npm runs scripts in the project's folder, but a path on the command line is relative to the user's folder. */
const fromUser = (path: string) => resolve(process.env['INIT_CWD'] ?? '.', path);
const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

async function readConversations(file: string, limit: number) {
  try {
    return parseConversations(await readFile(fromUser(file), 'utf8')).slice(0, limit);
  } catch (cause) {
    throw new Error(`${file}: ${reasonOf(cause)}`, { cause });
  }
}

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), readDrive);
  if ('exitCode' in read) return read.exitCode;
  const { file, limit, stream, json, adminUrl, key: given, ...options } = read.options;
  // `npm start` has stored both for its user: the demo tenant's live key, and the administrator's token.
  const state = await loadState(join(process.env['DATA_DIR'] ?? '.data', 'start.json'));
  const key = given ?? state.liveKey?.value;
  if (key === undefined) throw new Error('There is no key: name one with --key, or run npm start, which makes one.');
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(INTERRUPTED);
      stopping.abort();
    });
  }
  const report = await drive({
    ...options,
    conversations: await readConversations(file, limit),
    key,
    isStreamed: () => stream,
    account:
      adminUrl === undefined
        ? undefined
        : {
            admin: createAdminApi(adminUrl, options['admin-token'] ?? state.adminToken),
            tenantId: options.tenant ?? (given === undefined ? state.tenantId : undefined),
          },
    signal: stopping.signal,
    print: (line) => process.stdout.write(`${line}\n`),
  });
  if (json !== undefined) await saveReport(fromUser(json), report);
  if (stopping.signal.aborted) return INTERRUPTED;
  return report.passed ? 0 : 1;
}

/** Saves only figures, no texts. */
async function saveReport(file: string, { summary, records, checks }: DriveReport) {
  const requests = records.map((record) => ({ ...record, text: undefined, submitted: undefined }));
  await writeFile(file, `${JSON.stringify({ summary, checks, requests }, undefined, 2)}\n`);
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`);
  return 1;
});
