/** `npm run drive -- FILE.jsonl`: sends conversations through a running service. */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { CHAT_TIERS } from '../../shared/contracts/chat-request.ts';
import { readArguments, readNumber } from '../harness/read-arguments.ts';
import { runSupervised } from '../harness/run-supervised.ts';
import { loadState } from '../start/state.ts';
import { parseConversations } from './conversations.ts';
import { drive, isAnswered } from './drive.ts';

const USAGE = `npm run drive -- FILE.jsonl [--url http://127.0.0.1:8080/platform/v1] [--key KEY] [--stream]
                [--concurrency N] [--limit N] [--model mobius|oloid]`;
const CONCURRENCY_MAX = 1_000;

/** Throws an error of one sentence. */
function readDrive(args: string[]) {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      url: { ...text, default: 'http://127.0.0.1:8080/platform/v1' },
      key: text,
      model: text,
      stream: { type: 'boolean', default: false },
      concurrency: { ...text, default: '4' },
      limit: { ...text, default: String(Number.MAX_SAFE_INTEGER) },
    },
  });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new Error('Name one file of conversations.');
  if (values.model !== undefined && !CHAT_TIERS.some((tier) => tier === values.model))
    throw new Error(`--model must be ${CHAT_TIERS.join(' or ')}, not "${values.model}".`);
  if (URL.parse(values.url)?.protocol.startsWith('http') !== true)
    throw new Error(`--url must be an http or https URL, not "${values.url}".`);
  return {
    ...values,
    file,
    url: values.url.replace(/\/+$/, ''),
    concurrency: readNumber('concurrency', values.concurrency, CONCURRENCY_MAX),
    limit: readNumber('limit', values.limit, Number.MAX_SAFE_INTEGER),
  };
}

async function readConversations(file: string) {
  try {
    // npm runs scripts in the project's folder, but a path on the command line is relative to the user's folder.
    return parseConversations(await readFile(resolve(process.env['INIT_CWD'] ?? '.', file), 'utf8'));
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

const print = (line: string) => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const read = readArguments(USAGE, process.argv.slice(2), readDrive);
  if ('exitCode' in read) return read.exitCode;
  const { file, limit, stream, key: given, ...options } = read.options;
  return runSupervised('drive', print, async ({ supervisor: { signal } }) => {
    // `npm start` has stored the demo tenant's live key for its user.
    const key = given ?? (await loadState(join(process.env['DATA_DIR'] ?? '.data', 'start.json'))).liveKey?.value;
    if (key === undefined) throw new Error('There is no key: name one with --key, or run npm start, which makes one.');
    const conversations = (await readConversations(file)).slice(0, limit);
    return isAnswered(await drive({ ...options, conversations, key, isStreamed: () => stream, signal, print })) ? 0 : 1;
  });
}

process.exitCode = await main();
