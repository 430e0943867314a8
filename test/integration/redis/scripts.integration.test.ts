import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { startRedis } from '../../../scripts/embedded/redis.ts';
import type { EmbeddedRedis } from '../../../scripts/embedded/redis.ts';
import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';

let dataDir: string;
/** Of this file alone: other files call scripts while it forgets them. */
let redis: EmbeddedRedis;
let client: Redis;
let sent: string[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-scripts-'));
  redis = await startRedis({ dataDir, log: () => undefined });
  const opened = await openTestRedis('worker', redis.url);
  if (opened instanceof Cluster) throw new Error('The tests run on one server.');
  client = opened;
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    sent.push(command.name);
    return send(command, stream);
  };
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function openLease() {
  sent = [];
  return createLeaderLease(client, createKeyspace(uniqueName('lease')), 'one');
}

it('brings a script again with each connection', async () => {
  const leases = openLease();
  const ready = new Promise((resolve) => client.once('ready', resolve));

  client.disconnect(true);
  await ready;

  expect(await leases.hold(0, 'task')).toBe(true);
  expect(sent.slice(-2)).toEqual(['script', 'evalsha']);
});

it('sends the text to a server that has lost its scripts', async () => {
  const leases = openLease();
  await client.script('FLUSH');

  expect(await leases.hold(0, 'task')).toBe(true);
  expect(sent.slice(-2)).toEqual(['evalsha', 'eval']);
});

const ANY_LANGUAGE = 'Läufer № 7 \u{1F600}\r\n$3\r\nabc';

it.each([
  ['text of any language', ANY_LANGUAGE],
  ['long text of any language', ANY_LANGUAGE.repeat(20_000)],
  ['long text', 'abc'.repeat(20_000)],
])('hands a script %s as it is', async (_, process) => {
  const keyspace = createKeyspace(uniqueName('läufer'));

  await createLeaderLease(client, keyspace, process).hold(0, 'größe');

  expect(await client.get(keyspace.shard(0).lease('größe'))).toBe(process);
});
