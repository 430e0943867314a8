import { expect, it } from '@jest/globals';

import { openOwnCluster, openOwnNode, openOwnSentinels } from '../../support/redis/own-servers.ts';
import { loadConfig } from '../../../shared/config/load-config.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import { LOCALHOST } from '../../support/certificates.ts';
import { startService } from '../../support/service.ts';
import { answersAll } from '../../support/shards.ts';
import { useStarted } from '../../support/use-service.ts';

const TLS = { ...LOCALHOST, isMutual: true };
const FILES = { REDIS_TLS_CA_FILE: TLS.ca, REDIS_TLS_CERT_FILE: TLS.cert, REDIS_TLS_KEY_FILE: TLS.key };

const node = useStarted('node', () => openOwnNode({ password: 'a pass/word', tls: TLS }));

/** As an operator writes it: the files are in settings of their own. */
const plain = (url: string) => url.replace(/\?.*$/, '');

async function expectService(url: string): Promise<void> {
  const service = await startService({ env: { REDIS_URL: plain(url), ...FILES } });
  const tenant = await service.startTenant();
  expect(await answersAll(service, [tenant])).toBe(true);
  await service.close();
}

it('serves over TLS with an authority and a certificate of its own', () => expectService(node.url));

it.each([
  ['on a cluster that asks', () => openOwnCluster({ tls: TLS, replicas: 0 })],
  ['under sentinels that ask', () => openOwnSentinels({ tls: TLS, replicas: 1 })],
])('serves %s for a certificate', async (_where, open) => {
  const group = await open();

  await expectService(group.url);

  await group.close();
});

it.each([
  ['that the authority is unknown', {}, /self-signed certificate/, /REDIS_TLS_CA_FILE/],
  [
    'that a certificate is asked for',
    { REDIS_TLS_CA_FILE: TLS.ca },
    /certificate required|ECONNRESET|closed/,
    /REDIS_/,
  ],
])('says at the start %s', async (_what, files, reason, setting) => {
  const { redis } = loadConfig(
    {
      ...{ REDIS_URL: plain(node.url), MONGODB_URI: 'mongodb://h1/parley', ...files },
      CREDENTIALS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
    'worker',
  );
  const client = createRedis(redis.url, 'worker');
  client.on('error', () => undefined);

  const failed = await connectRedis(client, 2_000).catch((error: unknown) => error);

  expect(failed).toMatchObject({ message: expect.stringMatching(setting) });
  expect(String((failed as Error).cause)).toMatch(reason);
});

it('says which settings name a file that cannot be used', () => {
  const url = `${plain(node.url)}?tls_ca=${encodeURIComponent('/nonexistent/ca.pem')}`;

  expect(() => createRedis(url, 'worker')).toThrow(/check REDIS_TLS_CA_FILE/);
});
