import { afterEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { Redis } from 'ioredis';

import type { ConnectionRole } from '../../../shared/redis/connection.ts';
import { openTcpProxy } from '../../support/tcp-proxy.ts';
import { openTestRedis, redisUrl, uniqueName } from '../../support/stores.ts';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('the commands of one turn of the event loop', () => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function open(role: ConnectionRole = 'worker', url = redisUrl()): Promise<Redis> {
    const client = await openTestRedis(role, url);
    if (client instanceof Cluster) throw new Error('The tests run on one server.');
    client.on('error', () => undefined);
    closers.push(() => {
      client.disconnect();
    });
    return client;
  }

  const held = ({ stream }: Redis) => ({ corked: stream.writableCorked, bytes: stream.writableLength });

  it.each<ConnectionRole>(['producer', 'worker'])('share one write of a %s', async (role) => {
    const client = await open(role);

    const answers = Promise.all(Array.from({ length: 10 }, (_, at) => client.echo(`text ${at}`)));
    const during = held(client);
    await nextTurn();

    expect(during.corked).toBe(1);
    expect(during.bytes).toBeGreaterThan(10 * 'text 0'.length);
    expect(held(client).corked).toBe(0);
    expect(await answers).toEqual(Array.from({ length: 10 }, (_, at) => `text ${at}`));
  });

  it('share one write of a copy of the connection, as BullMQ makes one', async () => {
    const copy = (await open()).duplicate({ connectionName: 'copy' });
    closers.push(() => {
      copy.disconnect();
    });
    await copy.ping();

    const answer = copy.ping();

    expect(copy.stream.writableCorked).toBe(1);
    await answer;
  });

  it('get their own answers, transactions, pipelines and bytes among them', async () => {
    const client = await open();
    const key = uniqueName('cork');

    const answers = await Promise.all([
      client.set(key, '1'),
      client.multi().incr(key).get(key).exec(),
      client.set(`${key}:bytes`, Buffer.from([0, 255])),
      client.incr(key),
      client.pipeline().get(key).getBuffer(`${key}:bytes`).exec(),
      client.get(key),
    ]);

    expect(answers).toEqual([
      'OK',
      [
        [null, 2],
        [null, '2'],
      ],
      'OK',
      3,
      [
        [null, '3'],
        [null, Buffer.from([0, 255])],
      ],
      '3',
    ]);
  });

  it('are sent once, to the next connection, where this one breaks before the turn ends', async () => {
    const client = await open();
    const key = uniqueName('cork');

    const answers = Promise.all([client.incr(key), client.multi().incr(key).incr(key).exec(), client.incr(key)]);
    client.stream.destroy();

    expect(await answers).toEqual([
      1,
      [
        [null, 2],
        [null, 3],
      ],
      4,
    ]);
  });

  it('go on in order after an outage', async () => {
    const proxy = await openTcpProxy(redisUrl());
    closers.push(() => proxy.close());
    const client = await open('worker', proxy.url);
    const key = uniqueName('cork');

    const before = client.rpush(key, 'a');
    proxy.set('reset');
    const during = [client.rpush(key, 'b'), client.rpush(key, 'c')];
    await nextTurn();
    proxy.set('pass');
    await Promise.all([before, ...during, client.rpush(key, 'd')]);

    // What was under way may have been written before the connection broke; ioredis sends it again.
    const [first, ...rest] = (await client.lrange(key, 0, -1)).join('').replace('aa', 'a');
    expect([first, ...rest]).toEqual(['a', 'b', 'c', 'd']);
  });
});
