import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

import { lockHolder } from '../../../scripts/embedded/lock-file.ts';
import { startMongo } from '../../../scripts/embedded/mongo.ts';
import { startRedis } from '../../../scripts/embedded/redis.ts';
import { startServer } from '../../../scripts/embedded/server-process.ts';
import type { ServerOptions } from '../../../scripts/embedded/server-process.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import { isRunning, makeFolder } from '../../support/temporary-folder.ts';
import { waitUntil } from '../../support/wait-for.ts';

const CACHE_DIR = join(import.meta.dirname, '..', '..', '..', '.data', 'cache');
const START_TIMEOUT_MS = 60_000;

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeEach(async () => {
  folder = await makeFolder();
});
afterEach(() => folder.remove());

const quiet = () => undefined;

function serverOf(script: string, options: Partial<ServerOptions> = {}): ServerOptions {
  return {
    name: 'The server',
    command: '/bin/sh',
    args: ['-c', script],
    ready: () => Promise.resolve(),
    readyTimeoutMs: 5_000,
    stopTimeoutMs: 5_000,
    ...options,
  };
}

describe('a server process', () => {
  it('that ends while it starts is told with its last lines', async () => {
    const options = serverOf('echo "bad option" >&2; exit 3', { ready: () => Promise.reject(new Error('not yet')) });
    await expect(startServer(options)).rejects.toThrow(
      'The server did not start: it ended with exit code 3. Its last lines:\n    bad option',
    );
  });

  it('that cannot be used in time is told and ended', async () => {
    let pid = 0;
    const options = serverOf('echo $$; exec sleep 60', {
      ready: () => Promise.reject(new Error('not yet')),
      readyTimeoutMs: 300,
      onLine: (line) => (pid = Number(line)),
    });
    await expect(startServer(options)).rejects.toThrow('it could not be used after');
    expect(isRunning(pid)).toBe(false);
  });

  it('a server process whose program does not exist is told', async () => {
    await expect(startServer(serverOf('', { command: '/nonexistent' }))).rejects.toThrow('ENOENT');
  });

  it('that ignores SIGTERM is killed after its time', async () => {
    const { promise: trapped, resolve: onLine } = Promise.withResolvers<unknown>();
    const script = 'trap "" TERM; echo trapped; while :; do sleep 1; done';
    const server = await startServer(serverOf(script, { stopTimeoutMs: 200, onLine, ready: () => trapped }));
    await server.stop();
    expect(await server.exited).toBe('SIGKILL');
  });

  it('holds the lock of its data until it has ended, and keeps a second one from opening them', async () => {
    const lockFile = join(folder.path, 'server.lock');
    const server = await startServer(serverOf('exec sleep 60', { lockFile }));
    expect(lockHolder(lockFile)).toBe(server.pid);
    const second = startServer(serverOf('exec sleep 60', { lockFile, stopTimeoutMs: 100 }));
    await expect(second).rejects.toThrow(`process ${server.pid} uses the data in ${folder.path}`);
    await server.stop();
    expect(lockHolder(lockFile)).toBeUndefined();
  });

  it('ends when the process that started it is killed with SIGKILL', async () => {
    const parent = spawn(process.execPath, [
      join(import.meta.dirname, '../../support/start-and-wait.ts'),
      'exec sleep 60',
    ]);
    // The first thing it prints is the pid.
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
    expect(isRunning(Number(line))).toBe(true);
    parent.kill('SIGKILL');
    await waitUntil(() => !isRunning(Number(line)), 'the end of the process', 10_000);
  });
});

describe('embedded Redis', () => {
  it('refuses to evict, writes everything to its append-only file, and finds it at the next start', async () => {
    const first = await startRedis({ dataDir: folder.path, log: quiet });
    const client = createRedis(first.url, 'producer');
    await connectRedis(client);
    expect(await client.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    expect(await client.config('GET', 'appendonly')).toEqual(['appendonly', 'yes']);
    expect(await client.config('GET', 'appendfsync')).toEqual(['appendfsync', 'everysec']);
    await client.set('kept', 'yes');
    client.disconnect();
    await first.stop();

    const second = await startRedis({ dataDir: folder.path, log: quiet });
    const again = createRedis(second.url, 'producer');
    await connectRedis(again);
    expect(await again.get('kept')).toBe('yes');
    again.disconnect();
    await second.stop();
  });
});

describe('the password of embedded Redis', () => {
  const PASSWORD = '0123456789abcdef0123456789abcdef';

  it('is asked of every client, and can be read in no list of processes and no file of others', async () => {
    const redis = await startRedis({ dataDir: folder.path, log: quiet, password: PASSWORD });
    const client = createRedis(redis.url, 'producer');
    await connectRedis(client);
    const stranger = createRedis(redis.url.replace(`:${PASSWORD}@`, ''), 'worker');
    stranger.on('error', () => undefined);

    expect(await client.ping()).toBe('PONG');
    await expect(connectRedis(stranger, 1_000)).rejects.toThrow();
    expect(await readFile(`/proc/${redis.pid}/cmdline`, 'utf8')).not.toContain(PASSWORD);
    expect(redis.describe).not.toContain(PASSWORD);
    const file = join(folder.path, 'redis', 'secrets.conf');
    expect((await stat(file)).mode & 0o777).toBe(0o600);

    client.disconnect();
    stranger.disconnect();
    await redis.stop();
  });
});

describe('embedded MongoDB', () => {
  it(
    'commits transactions, and finds what they wrote at the next start',
    async () => {
      const options = { dataDir: folder.path, cacheDir: CACHE_DIR, prefer: 'fast' as const, log: quiet };
      const first = await startMongo(options);
      const connection = await connectMongo(first.url);
      const rows = connection.collection('rows');
      await connection.createCollection('rows');
      await connection.transaction((session) => rows.insertOne({ kept: true }, { session }));
      const aborted = connection.transaction(async (session) => {
        await rows.insertOne({ kept: false }, { session });
        throw new Error('not this one');
      });
      await expect(aborted).rejects.toThrow('not this one');
      await connection.close();
      await first.stop();

      const second = await startMongo(options);
      const again = await connectMongo(second.url);
      expect(second.kind).toBe(first.kind);
      expect(await again.collection('rows').find().project({ _id: 0 }).toArray()).toEqual([{ kept: true }]);
      await again.close();
      await second.stop();
    },
    START_TIMEOUT_MS,
  );
});
