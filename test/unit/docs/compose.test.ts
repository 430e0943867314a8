import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const COMPOSE = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
/** Settings that the file decides itself, and those of what it does not have. */
const OWN = [
  'NODE_ENV',
  'HOST',
  'ADMIN_HOST',
  'WORKER_PORT',
  'METRICS_PORT',
  'PROVIDER_PORT',
  'METRICS_PUBLIC',
  'REDIS_URL',
  'MONGODB_URI',
  'REVISION',
];
const NOT_HERE = /^(REDIS_(SENTINEL|TLS)_|TLS_|DATA_DIR$|OPENAI_API_KEY$|PROVIDER_(URL|MODEL|KEY)$|ANTHROPIC_API_KEY$)/;

const SERVICES = /^services:\n(.*?)^networks:/ms.exec(COMPOSE)?.[1] ?? '';
/** The text of each service, by its name. */
const services = [...SERVICES.matchAll(/^ {2}(\w+):\n((?: {4}.*\n|\n)+)/gm)].map(
  ([, name = '', text = '']) => [name, text] as const,
);
const networksOf = (name: string) => /networks: \[(.*)\]/.exec(new Map(services).get(name) ?? '')?.[1]?.split(', ');

describe('docker-compose.yml', () => {
  it.each(services)('gives %s no capabilities and no new privileges', (_name, text) => {
    const hardened = /^x-hardened: &hardened\n((?: {2}.*\n)+)/m.exec(COMPOSE)?.[1] ?? '';
    const process = /^x-process: &process\n((?: {2}.*\n)+)/m.exec(COMPOSE)?.[1] ?? '';

    for (const rule of ['cap_drop: [ALL]', 'no-new-privileges:true', 'read_only: true', 'tmpfs: [/tmp]'])
      expect(hardened).toContain(rule);
    expect(process).toContain('<<: *hardened');
    expect(text).toMatch(/<<: \*(hardened|process)/);
  });

  it('names all of its services in this test', () => {
    expect(services.map(([name]) => name)).toEqual([
      'api',
      'worker',
      'provider',
      'redis',
      'mongo',
      'prometheus',
      'grafana',
    ]);
  });

  it('limits the memory of each service, and of Redis below its container, and rotates logs', () => {
    for (const [, text] of services) expect(text).toMatch(/^ {4}mem_limit: /m);
    expect(COMPOSE).toContain('--maxmemory ${REDIS_MAXMEMORY:-2gb}');
    expect(COMPOSE).toMatch(/^ {2}logging:\n(?: {4}.*\n)*? {6}max-size: /m);
  });

  it('gives ingress and workers as long to stop as their settings allow, and the simulated provider only when asked', () => {
    const textOf = new Map(services);

    expect(textOf.get('api')).toContain('stop_grace_period: 15s${DRAIN_SECONDS:-5}s${SHUTDOWN_GRACE_SECONDS:-30}s');
    expect(textOf.get('worker')).toContain('stop_grace_period: 1m${REQUEST_TIMEOUT_SECONDS:-600}s');
    expect(textOf.get('provider')).toContain('profiles: [simulated]');
  });

  it('keeps the stores where only ingress and workers are', () => {
    const inStores = services.filter(([name]) => networksOf(name)?.includes('stores') === true).map(([name]) => name);

    expect(inStores).toEqual(['api', 'worker', 'redis', 'mongo']);
    expect([networksOf('redis'), networksOf('mongo'), networksOf('provider')]).toEqual([
      ['stores'],
      ['stores'],
      ['models'],
    ]);
    expect(COMPOSE).toMatch(/^ {2}stores:\n {4}internal: true$/m);
  });

  it('gives the service a user of MongoDB that reads and writes its database and may do nothing else', () => {
    const mongo = new Map(services).get('mongo') ?? '';
    const user = /MONGODB_URI: 'mongodb:\/\/(\w+):/.exec(COMPOSE)?.[1] ?? '';

    expect(mongo).not.toContain(`MONGO_INITDB_ROOT_USERNAME: ${user}\n`);
    expect(mongo).toContain(`user: '${user}', pwd, roles: [{ role: 'readWrite', db: 'parley' }]`);
    expect(mongo).not.toMatch(/MONGO_INITDB_ROOT_PASSWORD: \$\{MONGO_PASSWORD/);
    for (const [name, text] of services) if (name !== 'mongo') expect(text).not.toContain('MONGO_ROOT_PASSWORD');
  });

  it('passes on every other setting of .env', () => {
    const settings = Object.keys(parseEnv(readFileSync(join(ROOT, '.env.example'), 'utf8')));
    const wanted = settings.filter((name) => !OWN.includes(name) && !NOT_HERE.test(name));

    expect(wanted).toContain('STRIPE_SECRET_KEY');
    expect(wanted.filter((name) => !COMPOSE.includes(`\${${name}:`))).toEqual([]);
  });

  it('publishes ports to this machine only', () => {
    const ports = [...COMPOSE.matchAll(/^ {6}- '(.*\}:\d+)'$/gm)].map(([, port = '']) => port);

    expect(ports).toHaveLength(3);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });
});
