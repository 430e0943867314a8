import { parseArgs } from 'node:util';

import { CHAT_TIERS } from '../../shared/contracts/chat-request.ts';

export interface DriveArguments {
  file: string;
  /** Base URL, `/platform/v1` included. */
  url: string;
  /** Undefined: the live key of `npm start`. */
  key: string | undefined;
  stream: boolean;
  concurrency: number;
  /** How many conversations to send, from the beginning of the file. */
  limit: number;
  model: string | undefined;
  json: string | undefined;
  adminUrl: string | undefined;
  adminToken: string | undefined;
  tenant: string | undefined;
  /** Undefined: nothing is verified. */
  providerStats: string | undefined;
}

export const USAGE = `npm run drive -- FILE.jsonl [--url http://127.0.0.1:8080/platform/v1] [--key KEY] [--stream]
                [--concurrency N] [--limit N] [--model mobius|oloid] [--json OUT]
                [--admin-url http://127.0.0.1:8081 --admin-token TOKEN [--tenant ID]]
                [--verify --provider-stats http://127.0.0.1:8090]`;

const URL_DEFAULT = 'http://127.0.0.1:8080/platform/v1';
const CONCURRENCY_MAX = 1_000;

/** Throws an error of one sentence. */
export function parseDriveArguments(args: string[]): DriveArguments {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      url: { ...text, default: URL_DEFAULT },
      key: text,
      model: text,
      stream: flag,
      json: text,
      concurrency: { ...text, default: '4' },
      limit: text,
      verify: flag,
      'admin-url': text,
      'admin-token': text,
      tenant: text,
      'provider-stats': text,
    },
  });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new Error('Name one file of conversations.');
  if (values.model !== undefined && !CHAT_TIERS.some((tier) => tier === values.model)) {
    throw new Error(`--model must be ${CHAT_TIERS.join(' or ')}, not "${values.model}".`);
  }
  if (values.verify && (values['admin-url'] === undefined || values['provider-stats'] === undefined)) {
    throw new Error('--verify needs --admin-url and --provider-stats as well.');
  }
  return {
    file,
    url: readUrl('url', values.url),
    key: values.key,
    stream: values.stream,
    concurrency: readCount('concurrency', values.concurrency, CONCURRENCY_MAX),
    limit: values.limit === undefined ? Infinity : readCount('limit', values.limit, Number.MAX_SAFE_INTEGER),
    model: values.model,
    json: values.json,
    adminUrl: values['admin-url'] === undefined ? undefined : readUrl('admin-url', values['admin-url']),
    adminToken: values['admin-token'],
    tenant: values.tenant,
    providerStats: values.verify ? readUrl('provider-stats', values['provider-stats'] ?? '') : undefined,
  };
}

function readCount(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new Error(
    `--${name} must be a whole number from 1${max > CONCURRENCY_MAX ? '' : ` to ${max}`}, not "${text}".`,
  );
}

function readUrl(name: string, text: string): string {
  if (URL.parse(text)?.protocol.startsWith('http') === true) return text.replace(/\/+$/, '');
  throw new Error(`--${name} must be a URL as in ${URL_DEFAULT}, not "${text}".`);
}
