import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import { createLeaderLease } from '../../../shared/redis/stores/leader-lease.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { openOwnRedis } from '../../support/redis/own-servers.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

afterAll(() => {
  client.disconnect();
});
/** Of this file alone: other files call scripts while it forgets them. */
const redis = useStarted('redis', openOwnRedis);
let client: Redis;
let sent: string[] = [];
beforeAll(async () => {
  const opened = await openTestRedis('worker', redis.url);
  if (opened instanceof Cluster) throw new Error('The tests run on one server.');
  client = opened;
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    sent.push(command.name);
    return send(command, stream);
  };
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
