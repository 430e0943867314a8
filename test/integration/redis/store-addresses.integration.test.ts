import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { startNode } from '../../support/redis/redis-nodes.ts';
import type { RedisNode } from '../../support/redis/redis-nodes.ts';
import { connectMongo } from '../../../shared/mongo/connection.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { assertSuitable } from '../../../shared/redis/server-check.ts';
import { LOCALHOST } from '../../support/certificates.ts';
import { mongoUri, redisUrl } from '../../support/stores.ts';
import { makeFolder } from '../../support/temporary-folder.ts';

/** Longer than a server of this machine needs to say what is wrong. */
const TRIED_MS = 2_500;
/** A label of more than 63 characters: refused at once, with or without a network. */
const UNKNOWN_HOST = `${'x'.repeat(64)}.invalid`;

/** What the operator reads: the sentence, and what the server or Node.js said. */
async function saidOf(open: () => Promise<unknown>): Promise<string> {
  const error: unknown = await open().then(
    () => new Error('It was opened.'),
    (reason: unknown) => reason,
  );
  return `${(error as Error).message} (${String((error as Error).cause)})`;
}

describe('an address of Redis that cannot be used', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let nodes: Record<'locked' | 'encrypted' | 'clustered' | 'replica', RedisNode>;
  beforeAll(async () => {
    folder = await makeFolder();
    const start = (name: string, own: Record<string, string>, access = {}) =>
      startNode(name, { dataDir: folder.path, ...access }, () => own);
    const busPort = String(await freePort());
    const [locked, encrypted, clustered] = await Promise.all([
      start('locked', {}, { password: 'secret' }),
      start('encrypted', {}, { tls: { ...LOCALHOST, isMutual: true } }),
      start('clustered', {
        'cluster-enabled': 'yes',
        'cluster-config-file': 'nodes.conf',
        // Its default is among the ports of outgoing connections.
        'cluster-port': busPort,
      }),
    ]);
    const master = new URL(redisUrl());
    const replica = await start('replica', { replicaof: `${master.hostname} ${master.port}` });
    nodes = { locked, encrypted, clustered, replica };
  });
  afterAll(async () => {
    await Promise.all(Object.values(nodes).map((node) => node.process().stop()));
    await folder.remove();
  });

  async function use(url: string): Promise<void> {
    const client = createRedis(url, 'worker');
    try {
      await connectRedis(client, TRIED_MS);
      await assertSuitable(client, createKeyspace());
    } finally {
      client.disconnect();
    }
  }
  const at = (scheme: string, { port }: { port: number | string }, user = '') => `${scheme}://${user}127.0.0.1:${port}`;
  const single = () => new URL(redisUrl());

  it.each<[string, () => string, string, RegExp]>([
    ['lacks the password', () => at('redis', nodes.locked), 'asks for a password', /NOAUTH/],
    [
      'has a wrong password',
      () => at('redis', nodes.locked, ':none@'),
      'refuses the user or the password',
      /WRONGPASS/,
    ],
    ['lacks the password of a cluster', () => at('redis+cluster', nodes.locked), 'asks for a password', /NOAUTH/],
    [
      'is of a cluster where there is none',
      () => at('redis+cluster', single()),
      'no node of a Redis Cluster',
      /disabled/,
    ],
    ['is of sentinels where there are none', () => `${at('redis+sentinel', single())}/main`, 'no sentinel', /unknown/],
    ['asks for TLS where there is none', () => at('rediss', single()), 'does not answer over TLS', /./],
    ['asks for no TLS where there is', () => at('redis', nodes.encrypted), 'ends the connection at once', /ECONNRESET/],
    ['names a database that the server lacks', () => `${at('redis', single())}/99`, 'open database 99', /out of range/],
    ['has an unknown name', () => `redis://${UNKNOWN_HOST}:6379`, 'host is not known here', /ENOTFOUND/],
  ])('because it %s says so, and names the setting', async (_what, url, sentence, reason) => {
    const said = await saidOf(() => use(url()));

    expect(said).toContain(sentence);
    expect(said).toMatch(/REDIS_URL/);
    expect(said).toMatch(reason);
  });

  it('because it is of one node of a cluster says so', async () => {
    expect(await saidOf(() => use(at('redis', nodes.clustered)))).toContain('write REDIS_URL as redis+cluster://');
  });

  it('because it is of a replica names the master', async () => {
    const { hostname, port } = single();

    expect(await saidOf(() => use(at('redis', nodes.replica)))).toContain(
      `Redis is a replica, which takes no writes; name its master in REDIS_URL (${hostname}:${port},`,
    );
  });
});

describe('an address of MongoDB that cannot be used', () => {
  const changed = (change: (url: URL) => string | undefined) => {
    const url = new URL(mongoUri('store-addresses'));
    url.search = '';
    return change(url) ?? url.href;
  };

  it.each<[string, (url: URL) => string | undefined, string]>([
    [
      'names another replica set',
      (url) => {
        url.searchParams.set('replicaSet', 'other');
      },
      'named other; check replicaSet',
    ],
    [
      'has an unknown name',
      (url) => {
        url.host = UNKNOWN_HOST;
      },
      'host is not known here',
    ],
    [
      'has an option that there is not',
      (url) => {
        url.searchParams.set('nosuch', '1');
      },
      'MONGODB_URI cannot be read',
    ],
    ['has a colon in its password', (url) => `mongodb://user:se:cret@${url.host}/parley`, 'MONGODB_URI cannot be read'],
    [
      'has a percent sign in its password',
      (url) => `mongodb://user:se%cret@${url.host}/parley`,
      'MONGODB_URI cannot be read',
    ],
  ])('because it %s says so', async (_what, change, sentence) => {
    expect(await saidOf(() => connectMongo(changed(change)))).toContain(sentence);
  });
});
