import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { withMarkedRoutes } from '../../../api/open-stores.ts';
import { createCredentialRotation } from '../../../shared/mongo/administration/rotate-credentials.ts';
import { ensureIndexes } from '../../../shared/mongo/catalogue.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import type { MongoConnection } from '../../../shared/mongo/connection.ts';
import { createCredentialCipher } from '../../../shared/mongo/credentials.ts';
import { createProviderRepository } from '../../../shared/mongo/routing/provider-repository.ts';
import { createRoutingCache } from '../../../shared/mongo/routing/routing-cache.ts';
import type { RoutingCache, RoutingCacheDeps } from '../../../shared/mongo/routing/routing-cache.ts';
import { createRoutingRepository } from '../../../shared/mongo/routing/routing-repository.ts';
import { createTierRepository } from '../../../shared/mongo/routing/tier-repository.ts';
import type { RedisClient } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { createRoutingMark } from '../../../shared/redis/stores/breaker-store.ts';
import { createRecordingLog } from '../../support/recording-log.ts';
import { meterMongo } from '../../support/store-meter.ts';
import type { StoreMeter } from '../../support/store-meter.ts';
import { proxyTo } from '../../support/store-proxy.ts';
import type { StoreProxy } from '../../support/store-proxy.ts';
import { mongoUri, openTestMongo, openTestRedis, redisUrl, uniqueName } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

const PROVIDER = {
  kind: 'openai' as const,
  timeoutMs: 60_000,
  firstTokenTimeoutMs: 15_000,
  maxRetries: 2,
};
const LOOK_MS = 20;
/** Longer than a test: what comes sooner has come otherwise. */
const NEVER_MS = 600_000;

describe('the routes that a process knows', () => {
  const name = uniqueName('routes-');
  const keyspace = createKeyspace(name);
  const cipher = createCredentialCipher(Buffer.alloc(32, 7));
  const log = createRecordingLog();
  let meter: StoreMeter;
  let metered: MongoConnection;
  let mongo: MongoConnection;
  let proxy: StoreProxy;
  /** Of the process, as a worker has it. */
  let behind: RedisClient;
  let redis: RedisClient;
  let cache: RoutingCache | undefined;
  let looks: number;
  let address = 0;

  beforeAll(async () => {
    meter = await meterMongo(mongoUri(name));
    metered = await connectMongo(meter.url);
    mongo = await openTestMongo(name);
    await ensureIndexes(mongo);
    redis = await openTestRedis('producer');
    proxy = await proxyTo(redisUrl());
    behind = await openTestRedis('worker', proxy.url);
    behind.on('error', () => undefined);
  });
  beforeEach(async () => {
    looks = 0;
    log.lines.length = 0;
    await changeByHand();
  });
  afterEach(() => {
    cache?.stop();
    proxy.restore();
  });
  afterAll(async () => {
    behind.disconnect();
    await Promise.all([redis.quit(), mongo.close(), metered.close()]);
    await Promise.all([proxy.close(), meter.close()]);
  });

  async function open(times: RoutingCacheDeps['times'], more: Partial<RoutingCacheDeps> = {}): Promise<void> {
    const { read } = createRoutingMark(behind, keyspace);
    cache = await createRoutingCache({
      repository: createRoutingRepository(metered, cipher),
      async readMark() {
        looks += 1;
        return read();
      },
      log,
      ...(times === undefined ? {} : { times }),
      ...more,
    });
  }

  const nextAddress = () => `http://127.0.0.1:${(address += 1)}/v1`;

  async function changeByHand(): Promise<string> {
    const baseUrl = nextAddress();
    await createProviderRepository(mongo, cipher).put('sim', { ...PROVIDER, baseUrl }, Date.now());
    return baseUrl;
  }

  /** What the administration of another process writes with, which reaches Redis by `client`. */
  const writers = (client: RedisClient) =>
    withMarkedRoutes(
      {
        providers: createProviderRepository(mongo, cipher),
        tiers: createTierRepository(mongo),
        credentials: createCredentialRotation(mongo, cipher),
      },
      { mark: createRoutingMark(client, keyspace), recentWrites: { perform: (write) => write() }, log },
    );

  async function changeByAdministration(client = redis): Promise<string> {
    const baseUrl = nextAddress();
    await writers(client).providers.put('sim', { ...PROVIDER, baseUrl }, Date.now());
    return baseUrl;
  }

  const isInForce = (baseUrl: string) =>
    waitFor(() => (cache?.current().providers.get('sim')?.baseUrl === baseUrl ? true : undefined), 'the change');

  const looksMore = (count: number) => {
    const before = looks;
    return waitFor(() => (looks >= before + count ? true : undefined), 'further looks');
  };

  /** On a busy machine Redis may not answer in time, and then they are read. */
  const areLeftAlone = () =>
    waitFor(async () => {
      const before = meter.commands();
      await looksMore(10);
      return meter.commands() === before ? true : undefined;
    }, 'looks without a reading');

  it('are not read again while nothing has changed', async () => {
    await open({ lookMs: LOOK_MS, readMs: NEVER_MS });

    expect(await areLeftAlone()).toBe(true);
  });

  it.each([
    ['puts a provider', async () => changeByAdministration()],
    [
      'puts a tier',
      () => {
        const targets = [{ provider: 'sim', model: 'm', weight: 1, priority: 1, contextWindow: 8_000 }];
        const content = { promptRateMicro: 1, completionRateMicro: 1, targets };
        return writers(redis).tiers.put('mobius', content, Date.now());
      },
    ],
    ['deletes a provider', () => writers(redis).tiers.removeProvider('none')],
    ['rotates the key of the credentials', () => writers(redis).credentials.rotate()],
  ])('are read again, once, where the administration %s', async (_what, change) => {
    await open({ lookMs: LOOK_MS, readMs: NEVER_MS });
    await areLeftAlone();
    const before = meter.commands();

    await change();

    await waitFor(() => (meter.commands() - before >= 2 ? true : undefined), 'both collections to be read');
    expect(await areLeftAlone()).toBe(true);
  });

  it('are read again where they change while they are read', async () => {
    const repository = createRoutingRepository(metered, cipher);
    let changed: string | undefined;
    const load = async () => {
      const table = await repository.load();
      changed ??= await changeByAdministration();
      return table;
    };

    await open({ lookMs: LOOK_MS, readMs: NEVER_MS }, { repository: { load } });

    await isInForce(String(changed));
  });

  it('are read again within 5 s, as a change may have left no mark', async () => {
    await open(undefined);
    const startedAt = performance.now();

    await isInForce(await changeByHand());

    // The rest is for a busy machine.
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });

  it.each(['cut', 'stall'] as const)('follow each change while Redis is away (%s), without a word', async (event) => {
    await open({ lookMs: LOOK_MS, readMs: NEVER_MS });
    proxy[event]();

    for (let count = 0; count < 3; count += 1) await isInForce(await changeByHand());

    expect(log.lines).toEqual([]);
    proxy.restore();
    expect(await areLeftAlone()).toBe(true);
  });

  it('ask a Redis that hangs for one mark at a time', async () => {
    const mark = createRoutingMark(behind, keyspace);
    await expect(mark.read()).resolves.toEqual(expect.any(String));
    proxy.stall();
    await expect(mark.read()).rejects.toThrow('Command timed out');

    await expect(mark.read()).rejects.toThrow('Redis has not answered an earlier call');

    proxy.restore();
    await waitFor(() => mark.read().catch(() => undefined), 'an answer');
  });

  it('stay as they are while MongoDB cannot be read, which is said once', async () => {
    const mongoProxy = await proxyTo(mongoUri(name));
    const proxied = await connectMongo(mongoProxy.url, { callTimeoutMs: 1_000 });
    await open({ lookMs: LOOK_MS, readMs: NEVER_MS }, { repository: createRoutingRepository(proxied, cipher) });
    const before = cache?.current();
    mongoProxy.cut();
    const changed = await changeByAdministration();

    await looksMore(3);

    expect(cache?.current()).toBe(before);
    expect(log.lines.map(({ message }) => message)).toEqual([
      'The routing table cannot be read; the last one stays in use.',
    ]);
    mongoProxy.restore();
    await isInForce(changed);
    cache?.stop();
    await proxied.close();
    await mongoProxy.close();
  });

  it('are changed although the mark cannot be set, which is said', async () => {
    proxy.stall();

    const baseUrl = await changeByAdministration(behind);

    const row = await createProviderRepository(mongo, cipher).find('sim');
    expect(row?.baseUrl).toBe(baseUrl);
    expect(log.lines.map(({ message }) => message)).toEqual([
      'A change of routes could not be marked in Redis; processes that reach Redis follow within 5 s.',
    ]);
  });
});
