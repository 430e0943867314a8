import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

import { describe, expect, it } from '@jest/globals';

import { loadConfig } from '../../../../shared/config/load-config.ts';
import { settingsList } from '../../../../shared/config/settings.ts';
import { configDocs } from '../../../../scripts/config-docs.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..', '..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const VALUES = parseEnv(read('.env.example'));

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
  REDIS_MAXMEMORY: 'docker-compose.yml',
  REDIS_MEMORY: 'docker-compose.yml',
  MONGO_MEMORY: 'docker-compose.yml',
  GRAFANA_PORT: 'docker-compose.yml',
};

const REQUIRED = {
  REDIS_URL: 'redis://127.0.0.1:6379',
  MONGODB_URI: 'mongodb://127.0.0.1:27017/parley',
  ADMIN_TOKEN: '0123456789abcdef0123456789abcdef',
  CREDENTIALS_KEY: Buffer.alloc(32).toString('base64'),
};

describe('npm run config-docs', () => {
  it.each(Object.entries(configDocs()))('%s is as its source has it', (file, text) => {
    expect(read(file)).toBe(text);
  });
});

const allNames = () => [...settingsList.map(({ name }) => name), ...Object.keys(READ_ELSEWHERE)].sort();

describe('.env.example', () => {
  it('lists every variable that is read and no other', () => {
    expect(Object.keys(VALUES).sort()).toEqual(allNames());
  });

  it.each(Object.entries(READ_ELSEWHERE))('.env.example lists %s because %s reads it', (name, file) => {
    expect(read(file)).toMatch(new RegExp(String.raw`\['${name}'\]|\$\{${name}:[?-]`));
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
