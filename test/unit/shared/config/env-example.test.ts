import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

import { describe, expect, it } from '@jest/globals';

import { loadConfig } from '../../../../shared/config/load-config.ts';
import { settingsSchema } from '../../../../shared/config/settings-schema.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..', '..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const EXAMPLE = read('.env.example');
const VALUES = parseEnv(EXAMPLE);

/** Variables that no service process reads, and who does. */
const READ_ELSEWHERE: Readonly<Record<string, string>> = {
  DATA_DIR: 'scripts/start/settings.ts',
  PROVIDER_PORT: 'scripts/simulated-provider/main.ts',
  PROVIDER_URL: 'scripts/start/settings.ts',
  PROVIDER_MODEL: 'scripts/start/settings.ts',
  PROVIDER_KEY: 'scripts/start/settings.ts',
  OPENAI_API_KEY: 'scripts/start/settings.ts',
  ANTHROPIC_API_KEY: 'scripts/start/settings.ts',
  REDIS_PASSWORD: 'docker-compose.yml',
  MONGO_PASSWORD: 'docker-compose.yml',
  MONGO_ROOT_PASSWORD: 'docker-compose.yml',
  GRAFANA_PORT: 'docker-compose.yml',
};

const REQUIRED = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  MONGODB_URI: 'mongodb://127.0.0.1:27017/parley',
  ADMIN_TOKEN: '0123456789abcdef0123456789abcdef',
  CREDENTIALS_KEY: Buffer.alloc(32).toString('base64'),
};

const namesInSchema = () => Object.keys(settingsSchema.describe()['keys'] as object);

const allNames = () => [...namesInSchema(), ...Object.keys(READ_ELSEWHERE)].sort();

describe('.env.example', () => {
  it('lists every variable that is read and no other', () => {
    expect(namesInSchema()).toContain('STREAM_RETENTION_SECONDS');
    expect(Object.keys(VALUES).sort()).toEqual(allNames());
  });

  it.each(Object.entries(READ_ELSEWHERE))('.env.example lists %s because %s reads it', (name, file) => {
    expect(read(file)).toMatch(new RegExp(String.raw`\['${name}'\]|\$\{${name}:[?-]`));
  });

  it('says in the line above each variable what it is and what holds without it', () => {
    const lines = EXAMPLE.split('\n');
    const unexplained = lines.filter((line, index) => {
      const above = lines[index - 1] ?? '';
      return /^[A-Z]/.test(line) && !/^# .+(?:Default: |No default$)/.test(above);
    });
    expect(unexplained).toEqual([]);
  });

  it.each(['api', 'worker'] as const)('changes no default of the %s when it is copied as it is', (kind) => {
    expect(loadConfig({ ...VALUES, ...REQUIRED }, kind)).toEqual(loadConfig(REQUIRED, kind));
  });
});

describe('docker-compose.yml', () => {
  it('reads no variable that .env.example does not list', () => {
    const names = [...read('docker-compose.yml').matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name);

    expect(names).toContain('GRAFANA_PORT');
    expect(names.filter((name) => !allNames().includes(name ?? ''))).toEqual([]);
  });
});

/** Defaults that do not depend on other variables, as the schema has them. */
function plainDefaults(): [string, string][] {
  const keys = settingsSchema.describe()['keys'] as Record<string, { flags?: { default?: unknown } }>;
  return Object.entries(keys).flatMap(([name, { flags }]) =>
    ['string', 'number', 'boolean'].includes(typeof flags?.default) ? [[name, String(flags?.default)]] : [],
  );
}

describe('docs/guide/configuration.md', () => {
  it.each(plainDefaults())('the guide names the default of %s, which is %s', (name, value) => {
    const row = read('docs/guide/configuration.md')
      .split('\n')
      .find((line) => line.startsWith(`| \`${name}\``));
    expect(row?.split('|')[2]?.trim()).toBe(`\`${value}\``);
  });

  it('has a row for every variable that is read and for no other', () => {
    const rows = [...read('docs/guide/configuration.md').matchAll(/^\| `([A-Z][A-Z0-9_]*)`/gm)];
    expect(rows.map(([, name]) => name).sort()).toEqual(allNames());
  });
});
