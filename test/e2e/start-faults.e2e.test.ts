import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { acquireLock } from '../../scripts/embedded/lock-file.ts';
import { freePort } from '../../scripts/embedded/ports.ts';
import { startRedis } from '../../scripts/embedded/redis.ts';
import type { EmbeddedRedis } from '../../scripts/embedded/redis.ts';
import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import { settingsFor } from '../support/fleet.ts';
import { spawnProcess } from '../support/processes.ts';
import type { TestProcess } from '../support/processes.ts';
import { mongoUri, redisUrl } from '../support/stores.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { waitFor, waitUntil } from '../support/wait-for.ts';

type Settings = Record<string, string>;

const BOTH = ['api/main.ts', 'workers/main.ts'] as const;

describe('a process that cannot start', () => {
  let dataDir: string;
  let evicting: EmbeddedRedis;
  let taken: Server;
  let takenPort: number;
  let closedPort: number;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'parley-start-faults-'));
    evicting = await startRedis({ dataDir, log: () => undefined });
    const client = createRedis(evicting.url, 'worker');
    await connectRedis(client);
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    client.disconnect();
    taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    // A TCP server that listens has such an address.
    takenPort = (taken.address() as AddressInfo).port;
    closedPort = await freePort();
  });
  afterAll(async () => {
    taken.close();
    await evicting.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Ends with exit code 1; resolves with what it said on stderr, by lines. `during`: what happens while it starts. */
  async function fail(
    file: (typeof BOTH)[number] | 'scripts/start.ts',
    own: Settings,
    during?: (child: TestProcess) => Promise<void>,
  ): Promise<string[]> {
    const base = settingsFor(redisUrl(), mongoUri('e2e-start-faults'));
    const ports: Settings = { PORT: String(await freePort()), ADMIN_PORT: String(await freePort()), WORKER_PORT: '0' };
    const child = spawnProcess(file, { ...base, ...ports, ...own });
    await during?.(child);
    const overdue = setTimeout(() => void child.kill(), 50_000);
    const exit = await child.exited;
    clearTimeout(overdue);
    expect(exit).toMatchObject({ code: 1, signal: null });
    expect(child.stderr()).not.toMatch(/^\s+at |node:internal|\[ioredis\]/m);
    expect(child.stdout()).not.toContain('"level":"error"');
    return child.stderr().trimEnd().split('\n');
  }

  const failBoth = (own: Settings) => Promise.all(BOTH.map((file) => fail(file, own)));

  it('because Redis evicts keys says how to set it right', async () => {
    const sentence =
      'Redis has maxmemory-policy allkeys-lru, which may drop running requests; set it to noeviction (CONFIG SET maxmemory-policy noeviction).';

    expect(await failBoth({ REDIS_URL: evicting.url })).toEqual([[sentence], [sentence]]);
  }, 60_000);

  it('because MongoDB knows no such user says so, without the password, and does not wait for it', async () => {
    const uri = mongoUri('e2e-start-faults').replace('//', '//parley:not-the-password@');

    for (const lines of await failBoth({ MONGODB_URI: uri })) {
      expect(lines).toEqual([expect.stringContaining('MongoDB refuses the user or the password; check MONGODB_URI')]);
      expect(lines.join()).not.toContain('not-the-password');
    }
  }, 60_000);

  it('because MongoDB speaks no TLS says so, and does not wait for it', async () => {
    // A server that speaks no TLS ends such a connection.
    const [uri, sentence] = [`${mongoUri('e2e-start-faults')}&tls=true`, 'MongoDB ends the connection at once; check'];

    for (const lines of await failBoth({ MONGODB_URI: uri }))
      expect(lines).toEqual([expect.stringContaining(sentence)]);
  }, 60_000);

  /** Starts an ingress and a worker whose store is away, and then the store. */
  async function expectToWait(own: Settings, says: string, startStore: () => Promise<() => Promise<unknown>>) {
    const ports = { api: await freePort(), worker: await freePort() };
    const base = { ...settingsFor(redisUrl(), mongoUri('e2e-start-waits')), ...own };
    const children = [
      spawnProcess('api/main.ts', { ...base, PORT: String(ports.api), ADMIN_PORT: String(await freePort()) }),
      spawnProcess('workers/main.ts', { ...base, WORKER_PORT: String(ports.worker) }),
    ];
    const urls = Object.values(ports).map((port) => `http://127.0.0.1:${port}`);
    const statusesOf = (path: string) =>
      Promise.all(
        urls.map((url) =>
          fetch(`${url}${path}`).then(
            ({ status }) => status,
            () => 0,
          ),
        ),
      );
    const become = (path: string, status: number) =>
      waitFor(
        async () => ((await statusesOf(path)).every((each) => each === status) ? true : undefined),
        `${path} to be ${status}`,
        30_000,
      );
    const sayings = () => children.map((child) => child.stdout().split(says).length - 1);

    await waitUntil(() => sayings().every((times) => times === 1), 'both to say it', 30_000);
    await become('/health/live', 200);
    expect(await statusesOf('/health/ready')).toEqual([503, 503]);
    const call = await fetch(`${urls[0]}/platform/v1/chat`, { method: 'POST' });
    expect([call.status, await call.json()]).toMatchObject([503, { error: { code: 'model_unavailable' } }]);
    const stopStore = await startStore();
    await become('/health/ready', 200);
    expect(sayings()).toEqual([1, 1]);

    for (const child of children) child.signal('SIGTERM');
    expect(await Promise.all(children.map(({ exited }) => exited))).toMatchObject([{ code: 0 }, { code: 0 }]);
    await stopStore();
  }

  it('because Redis is away waits for it: alive, not ready, with one line of the log', async () => {
    const port = await freePort();
    await expectToWait(
      { REDIS_URL: `redis://127.0.0.1:${port}` },
      'Redis does not answer; check REDIS_URL',
      async () => (await startRedis({ dataDir: join(dataDir, 'late'), port, log: () => undefined })).stop,
    );
  }, 90_000);

  it('because MongoDB is away waits for it: alive, not ready, with one line of the log', async () => {
    const proxy = await openTcpProxy(mongoUri('e2e-start-waits'));
    proxy.set('refuse');
    await expectToWait({ MONGODB_URI: proxy.url }, 'MongoDB does not answer; check MONGODB_URI', () => {
      proxy.set('pass');
      return Promise.resolve(proxy.close);
    });
  }, 90_000);

  it('because a port is in use names the port and its setting', async () => {
    const inUse = (setting: string) => [
      `Port ${takenPort} is in use; stop what uses it or set ${setting} to another port.`,
    ];

    const said = await Promise.all([
      fail('api/main.ts', { PORT: String(takenPort) }),
      fail('workers/main.ts', { WORKER_PORT: String(takenPort) }),
    ]);

    expect(said).toEqual([inUse('PORT'), inUse('WORKER_PORT')]);
  }, 60_000);

  it('because of several wrong settings reports all of them together', async () => {
    const wrong = {
      PORT: 'eighty',
      REDIS_URL: 'http://127.0.0.1:6379',
      CREDENTIALS_KEY: 'short',
      WORKER_CONCURRENCY: '0',
      LOG_LEVEL: 'loud',
    };

    const [head, ...faults] = await fail('api/main.ts', { ...wrong, ADMIN_TOKEN: 'too short' });

    expect(head).toBe('6 settings are wrong:');
    expect(faults).toHaveLength(6);
    for (const setting of [...Object.keys(wrong), 'ADMIN_TOKEN']) {
      expect(faults.filter((fault) => fault.startsWith(`  - ${setting} `))).toHaveLength(1);
    }
  }, 60_000);

  it('because settings are missing names each: a worker needs no administrator’s token', async () => {
    const missing = { REDIS_URL: '', MONGODB_URI: '', CREDENTIALS_KEY: '', ADMIN_TOKEN: '' };

    const [head, ...faults] = await fail('workers/main.ts', missing);

    expect(head).toBe('3 settings are wrong:');
    expect(faults.join('\n')).toMatch(/REDIS_URL[^]*MONGODB_URI[^]*CREDENTIALS_KEY/);
  }, 60_000);

  it('because a certificate cannot be read names the setting', async () => {
    const files = { TLS_CERT_FILE: '/nonexistent/cert.pem', TLS_KEY_FILE: '/nonexistent/key.pem' };

    const [line, ...more] = await fail('api/main.ts', files);

    expect(line).toMatch(/^The certificate cannot be used; check TLS_CERT_FILE and TLS_KEY_FILE. \(.*ENOENT.*\)$/);
    expect(more).toEqual([]);
  }, 60_000);

  it('because its folder cannot be used says which setting names another: npm start', async () => {
    const file = join(dataDir, 'no-folder');
    await writeFile(file, '');

    expect((await fail('scripts/start.ts', { DATA_DIR: file })).join('')).toMatch(
      new RegExp(`^${file} cannot be used \\(EEXIST.*set DATA_DIR to a folder`),
    );
  }, 60_000);

  it('because nothing can be made where its folder is to be says so, and does not try without end: npm start', async () => {
    expect((await fail('scripts/start.ts', { DATA_DIR: '/proc/parley/data' })).join('')).toMatch(
      /^\/proc\/parley\/data cannot be used \(ENOENT.*set DATA_DIR to a folder/,
    );
  }, 60_000);

  it('because of a port that a killed npm start still has waits for its end: npm start', async () => {
    const left = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => left.once('listening', resolve));
    // A TCP server that listens has such an address.
    const { port } = left.address() as AddressInfo;
    const killed = join(dataDir, 'killed');
    // No process has so high a pid.
    acquireLock(join(killed, 'start.lock')).handTo(2 ** 30);
    // What it fails of behind the ports.
    const redis = { REDIS_URL: `redis://127.0.0.1:${closedPort}` };
    const own = { ...redis, DATA_DIR: killed, PORT: String(port), PROVIDER_PORT: String(await freePort()) };

    const said = await fail('scripts/start.ts', own, async (child) => {
      const waits = 'waiting up to 12 s for ports';
      await waitUntil(() => child.stdout().includes(waits), 'the start to wait');
      left.close();
    });

    expect(said.join('\n')).not.toContain('is in use');
    expect(said.join('\n')).toContain('REDIS_URL');
  }, 60_000);

  it('because the model server of PROVIDER_URL is away says so before it starts anything', async () => {
    const url = `http://127.0.0.1:${closedPort}/v1`;

    const said = await fail('scripts/start.ts', { PROVIDER_URL: url, DATA_DIR: join(dataDir, 'no-model') });

    expect(said.join('\n').trim()).toMatch(
      /^Nothing answers at .*\/models \(ECONNREFUSED\): start the model server, or/,
    );
  }, 60_000);
});
