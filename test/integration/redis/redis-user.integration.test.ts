import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from '@jest/globals';

import { openOwnCluster, openOwnNode } from '../../support/redis/own-servers.ts';
import { withClient } from '../../support/redis/redis-nodes.ts';
import { connectRedis, createRedis } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { assertSuitable } from '../../../shared/redis/server-check.ts';
import { itemsOf, postLines } from '../../support/batch-client.ts';
import { chatOf, postChat, waitUntil } from '../../support/chat.ts';
import { jobOf } from '../../support/compliance.ts';
import { openStream } from '../../support/stream-client.ts';
import { moveWhenIdle, shardOf } from '../../support/move-lab.ts';
import { startService } from '../../support/service.ts';
import type { TestService } from '../../support/service.ts';
import { answersAll, tenantsByShard } from '../../support/shards.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useStarted } from '../../support/use-service.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

const GUIDE = join(import.meta.dirname, '../../../docs/guide/operating.md');
/** As an operator finds it in the guide. */
const RULE = /^ACL SETUSER parley .*$/m.exec(readFileSync(GUIDE, 'utf8'))?.[0] ?? '';

const node = useStarted('node', openOwnNode);

async function makeUser(url: string, more: string[], prefix: string): Promise<void> {
  const [, , ...words] = RULE.replaceAll('{chat-', `{${prefix}`).split(' ');
  await withClient(url, (client) => client.call('ACL', 'SETUSER', ...words, ...more));
}

/** Makes the user, with `more` rules behind those of the guide. Returns its address. */
async function urlOfUser(more: string[] = [], prefix = 'chat-'): Promise<string> {
  await makeUser(node.url, more, prefix);
  return node.url.replace('//', '//parley:PASSWORD@');
}

it('a password that nobody is asked for is told to the operator', async () => {
  const adviceFor = async (url: string) => {
    const client = createRedis(url, 'producer');
    await connectRedis(client, 2_000);
    try {
      return (await assertSuitable(client, createKeyspace())).filter((each) => each.includes('asks nobody'));
    } finally {
      client.disconnect();
    }
  };
  const withPassword = node.url.replace('//', '//:PASSWORD@');

  expect(await adviceFor(node.url)).toEqual([]);
  expect(await adviceFor(withPassword)).toHaveLength(1);
  await withClient(node.url, (client) => client.config('SET', 'requirepass', 'PASSWORD'));
  expect(await adviceFor(withPassword)).toEqual([]);
  await withClient(withPassword, (client) => client.config('SET', 'requirepass', ''));
});

async function startFault(url: string): Promise<string> {
  const client = createRedis(url, 'producer');
  client.on('error', () => undefined);
  try {
    await connectRedis(client, 2_000);
    await assertSuitable(client, createKeyspace());
    return '';
  } catch (error) {
    const { message, cause } = error as Error;
    return `${message} ${cause instanceof Error ? cause.message : ''}`;
  } finally {
    client.disconnect();
  }
}

/** What has been refused, by the server's own log. */
const refusedBy = (url: string) => withClient(url, (client) => client.call('ACL', 'LOG'));

async function doEverything(service: TestService): Promise<void> {
  const tenant = await service.startTenant();
  const { tenantId, key } = tenant;
  const api = apiOf(service, key);
  const receiver = await startWebhookReceiver();
  await api('post', '/webhooks', { url: receiver.url, events: ['batch.completed'] });
  expect(await answersAll(service, [tenant])).toBe(true);
  const long = { role: 'user', content: 'wordswordsword '.repeat(1_000) };
  expect((await postChat(service.app, key, { messages: [long, long, long] })).status).toBe(200);
  await api('post', '/chat', chatOf('Once'), { 'Idempotency-Key': 'once' });
  await api('post', '/chat', chatOf('Later'), { Prefer: 'respond-async' });
  service.provider.change({ chunks: 100, chunk_ms: 50 });
  const live = await openStream(service.url, key, chatOf('Hi'));
  await waitUntil(() => live.read.text !== '', 'text');
  await api('post', `/chat/${live.requestId}/cancel`);
  await live.ended;
  service.provider.restore();
  await api('get', `/chat/stream/${live.requestId}`);
  const { body: batch } = await postLines(service, key, itemsOf(3));
  await receiver.next('batch.completed', 1);
  expect((await api('get', `/batches/${String(batch.id)}`)).body.status).toBe('completed');
  await postChat(service.app, key, chatOf('Remember me', { entity_id: 'pupil' }));
  const asked = await api('post', '/compliance/exports', { scope: 'entity', entity_id: 'pupil' });
  expect(await jobOf(api, 'exports', String(asked.body.id))).toMatchObject({ status: 'completed' });
  const deleted = await api('post', '/compliance/deletions', { scope: 'entity', entity_id: 'pupil' });
  expect(await jobOf(api, 'deletions', String(deleted.body.id))).toMatchObject({ status: 'completed' });
  const moved = await moveWhenIdle(service, tenantId, 1 - (await shardOf(service, tenantId)));
  expect(moved.status).toBe(200);
  await service.admin('get', '/queues');
  await service.admin('get', '/settlement');
  await service.admin('get', '/breakers');
  await api('get', '/usage');
  await receiver.close();
}

it('does everything with the rights of the guide, and asks for no others, in another database, too', async () => {
  const service = await startService({
    env: { REDIS_URL: `${await urlOfUser([], '')}/3`, QUEUE_SHARDS: '2', WEBHOOK_ALLOW_PRIVATE: 'true' },
  });

  await doEverything(service);
  await service.close();

  expect(await refusedBy(node.url)).toEqual([]);
  expect(await withClient(node.url, (client) => client.info('keyspace'))).toMatch(/^db3:/m);
  expect(await withClient(node.url, (client) => client.dbsize())).toBe(0);
}, 120_000);

it('is content with the rule as the guide has it', async () => {
  expect(await startFault(await urlOfUser())).toBe('');
});

it.each([
  [['-restore'], 'RESTORE {chat-0}:check 1 1'],
  [['-eval'], "the 'eval' command"],
  [['-info'], 'needs: INFO.'],
  [['resetkeys', '~{chat-0}*'], 'GET {chat-webhooks}:check'],
  [['resetchannels', '&{chat-*'], 'PUBLISH parley:access -'],
  [['-@hash'], 'and 8 more'],
])('says at the start what the user may not do: %j', async (more, lacking) => {
  const fault = await startFault(await urlOfUser(more));

  expect(fault).toContain('The Redis user lacks rights');
  expect(fault).toContain(lacking);
});

it('says at the start that the password is another one', async () => {
  const url = await urlOfUser();

  expect(await startFault(url.replace(':PASSWORD@', ':wrong@'))).toContain('WRONGPASS');
});

it('serves on a cluster with the rights of the guide', async () => {
  const cluster = await openOwnCluster({ replicas: 0 });
  for (const { url } of cluster.nodes) await makeUser(url, [], '');
  const service = await startService({
    env: { REDIS_URL: cluster.url.replace('//', '//parley:PASSWORD@'), QUEUE_SHARDS: '2' },
  });

  expect(await answersAll(service, await tenantsByShard(service, 2))).toBe(true);
  await service.close();

  expect(await Promise.all(cluster.nodes.map(({ url }) => refusedBy(url)))).toEqual([[], [], []]);
  await cluster.close();
});
