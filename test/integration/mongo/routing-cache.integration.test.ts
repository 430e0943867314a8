import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

import { ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createProviderRepository } from '../../../shared/mongo/routing/provider-repository.ts';
import { createRoutingCache } from '../../../shared/mongo/routing/routing-cache.ts';
import type { RoutingCache } from '../../../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../../../shared/mongo/routing/routing-repository.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { mongoUri, openTestMongo, uniqueName } from '../../support/stores.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

const PROVIDER = { kind: 'openai' as const, timeoutMs: 60_000, firstTokenTimeoutMs: 15_000, maxRetries: 2 };

describe('the routes that a process knows', () => {
  const name = uniqueName('routes-');
  const cipher = createCredentialCipher(Buffer.alloc(32, 7));
  const log = createRecordingLog();
  let proxy: TcpProxy;
  let proxied: MongoConnection;
  let mongo: MongoConnection;
  let cache: RoutingCache | undefined;
  let address = 0;

  beforeAll(async () => {
    mongo = await openTestMongo(name);
    await ensureIndexes(mongo);
    proxy = await openTcpProxy(mongoUri(name));
    proxied = await connectMongo(proxy.url, { callTimeoutMs: 1_000 });
  });
  afterEach(() => {
    cache?.stop();
  });
  afterAll(async () => {
    await Promise.all([mongo.close(), proxied.close()]);
    await proxy.close();
  });

  async function open(readEveryMs?: number): Promise<void> {
    const repository = createRoutingRepository(proxied, cipher);
    cache = await createRoutingCache({ repository, log, ...(readEveryMs === undefined ? {} : { readEveryMs }) });
  }

  async function change(): Promise<string> {
    const baseUrl = `http://127.0.0.1:${(address += 1)}/v1`;
    await createProviderRepository(mongo, cipher).put('sim', () => ({ ...PROVIDER, baseUrl }), Date.now());
    return baseUrl;
  }

  const isInForce = (baseUrl: string) =>
    waitFor(() => (cache?.current().providers.get('sim')?.baseUrl === baseUrl ? true : undefined), 'the change');

  it('follow each change within a second', async () => {
    await open();
    const startedAt = performance.now();

    for (let count = 0; count < 3; count += 1) await isInForce(await change());

    // A machine with other work may be late by the rest.
    expect(performance.now() - startedAt).toBeLessThan(6_000);
  });

  it('stay as they are while MongoDB cannot be read, which is said once', async () => {
    await open(20);
    const before = cache?.current();
    proxy.set('reset');
    const changed = await change();
    const messages = () => log.lines.map(({ message }) => message);

    await waitUntil(() => messages().length > 0, 'a reading that fails');

    expect(cache?.current().providers.get('sim')).toEqual(before?.providers.get('sim'));
    proxy.set('pass');
    await isInForce(changed);
    expect(messages()).toEqual([
      'The routing table cannot be read; the last one stays in use.',
      'The routing table can be read again.',
    ]);
  });
});
