import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';

import { settings, settingsList, settingsSchema } from './settings.ts';
import type { Config, Setting } from './settings.ts';

const UNKNOWN = 'unknown';

/** Some settings are read by one process only: a worker needs no admin token, an ingress no worker port. */
export type ProcessKind = 'api' | 'worker';

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `${faults.length === 1 ? 'A setting is' : `${faults.length} settings are`} wrong:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.faults = faults;
  }
}

/** An empty value counts as absent, as in a `.env` file. Throws one ConfigError that lists every fault. */
export function loadConfig(env: Record<string, string | undefined>, kind: ProcessKind): Readonly<Config> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const { secrets, faults } = readSecretFiles(set);
  const given = { ...set, ...secrets };
  const checked = settingsSchema.validate(given, {
    abortEarly: false,
    stripUnknown: true,
    errors: { wrap: { label: false } },
  });
  faults.push(...(checked.error?.details ?? []).map((detail) => `${detail.message}.`));
  if (kind === 'api' && given['ADMIN_TOKEN'] === undefined && given['ADMIN_TOKENS'] === undefined)
    faults.push('ADMIN_TOKEN or ADMIN_TOKENS is required.');
  faults.push(...testSettingsIn(given));
  if (checked.error !== undefined || faults.length > 0) throw new ConfigError(faults);
  return freezeDeeply(nest(checked.value));
}

const fileOf = (name: string): string => `${name}_FILE`;
const secretNames = settingsList.filter(({ isSecret }) => isSecret).map(({ name }) => name);

function readSecretFiles(set: Record<string, string | undefined>) {
  const secrets: Record<string, string> = {};
  const faults: string[] = [];
  for (const name of secretNames) {
    const path = set[fileOf(name)];
    if (path === undefined) continue;
    try {
      secrets[name] = readFileSync(path, 'utf8').trim();
    } catch {
      faults.push(`${fileOf(name)} names a file that cannot be read; check its path and who may read it.`);
    }
    if (set[name] !== undefined) faults.push(`${name} and ${fileOf(name)} are both set; remove one of them.`);
  }
  return { secrets, faults };
}

/** Tells whether one text becomes the other by at most `edits` insertions, deletions and replacements. */
function isWithin(one: string, other: string, edits: number): boolean {
  let at = 0;
  while (one[at] !== undefined && one[at] === other[at]) at += 1;
  const [left, right] = [one.slice(at), other.slice(at)];
  if (left === right) return true;
  if (edits === 0) return false;
  const [shorter, less] = [left.slice(1), right.slice(1)];
  return isWithin(shorter, right, edits - 1) || isWithin(left, less, edits - 1) || isWithin(shorter, less, edits - 1);
}

/** Names of few letters are near to those of other programs: HOME to HOST. */
const SHORT = 8;

/** One sentence for each unknown name that looks like a misspelt setting; its value is ignored. */
export function adviceOnNames(env: Record<string, string | undefined>): string[] {
  const known = settingsList.map(({ name }) => name);
  const own = new Set([...known, ...secretNames.map(fileOf)]);
  return Object.keys(env).flatMap((name) => {
    if (own.has(name)) return [];
    const meant = known.find((each) => isWithin(name.toUpperCase(), each, each.length < SHORT ? 1 : 2));
    return meant === undefined ? [] : [`${name} is no setting and changes nothing; did you mean ${meant}?`];
  });
}

/** A copied `.env` must not give credits away, or let tenants reach what only this network may. */
function testSettingsIn(given: Record<string, string | undefined>): string[] {
  const isTrue = (name: string) => given[name]?.toLowerCase() === 'true';
  if (given['NODE_ENV'] !== 'production' || isTrue('ALLOW_TEST_SETTINGS')) return [];
  const used = [
    ...(given['PAYMENTS'] === 'test' ? ['PAYMENTS=test'] : []),
    ...(isTrue('WEBHOOK_ALLOW_PRIVATE') ? ['WEBHOOK_ALLOW_PRIVATE=true'] : []),
  ];
  return used.map(
    (setting) => `${setting} is for tests; change it, or set ALLOW_TEST_SETTINGS=true where nobody is served.`,
  );
}

function freezeDeeply<Value extends object>(value: Value): Readonly<Value> {
  for (const part of Object.values(value) as unknown[]) {
    // The bytes of a Buffer cannot be frozen.
    if (typeof part === 'object' && part !== null && !Buffer.isBuffer(part)) freezeDeeply(part);
  }
  return Object.freeze(value);
}

/** A setting that is absent is an absent key. */
function nest(values: Record<string, unknown>): Config {
  const groups = Object.entries(settings as Record<string, Record<string, Setting>>).map(([group, rows]) => [
    group,
    Object.fromEntries(
      Object.entries(rows).flatMap(([key, { name }]) => (values[name] === undefined ? [] : [[key, values[name]]])),
    ),
  ]);
  const config = Object.fromEntries(groups) as Config;
  config.redis.url = redisUrlOf(config.redis);
  return config;
}

/** The address with all that `parseRedisUrl` takes apart again: one text says how to reach all servers. */
function redisUrlOf(redis: Config['redis']): string {
  const asked = Object.entries({
    sentinel_username: redis.sentinelUsername,
    sentinel_password: redis.sentinelPassword,
    sentinel_tls: redis.sentinelTls,
    tls_ca: redis.tlsCaFile,
    tls_cert: redis.tlsCertFile,
    tls_key: redis.tlsKeyFile,
  }).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, String(value)]]));
  if (asked.length === 0) return redis.url;
  const mark = redis.url.includes('?') ? '&' : '?';
  return `${redis.url}${mark}${new URLSearchParams(asked).toString()}`;
}

/** The only place that reads the environment of this process. */
export const environment: Record<string, string | undefined> = process.env;

function readVersion(): string {
  const file = findPackageJSON('..', import.meta.url);
  if (file === undefined) return UNKNOWN;
  // The package's own file, also above `dist`.
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Metrics, health, log and registry name this version and the commit it was built from. */
export const BUILD = { version: readVersion(), commit: environment['REVISION'] ?? UNKNOWN } as const;
