import { createServer } from 'node:net';

import { describe, expect, it } from '@jest/globals';

import { createChunkChannel } from '../../../shared/requests/channels.ts';
import { createRedis } from '../../../shared/redis/connection.ts';
import { createKeyspace } from '../../../shared/redis/keyspace.ts';
import { waitUntil } from '../../support/chat.ts';
import { openRelayLab, sequenceOf } from '../../support/relay-lab.ts';
import type { Heard } from '../../support/relay-lab.ts';
import { SHARD } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);
const numbered = (first: number, last: number) => upTo(last - first + 1).map((index) => `${first + index - 1} `);

async function heardUpTo(heard: Heard, last: number): Promise<void> {
  await waitUntil(() => sequenceOf(heard.entries).at(-1) === last, `event ${last}`);
  expect(sequenceOf(heard.entries)).toEqual(upTo(last));
}

describe('the relay', () => {
  const relay = useStarted('relay', openRelayLab);

  it('hands on every entry once and in order, up to the end', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);

    for (let batch = 0; batch < 20; batch += 1) await request.append(...numbered(batch * 3 + 1, batch * 3 + 3));
    await request.finish('the rest');

    await heardUpTo(heard, 60 + 1 + 2);
    expect(heard.texts().join('')).toBe(`${numbered(1, 60).join('')}the rest`);
    expect(heard.entries.at(-1)?.terminal).toMatchObject({ finishReason: 'stop' });
  });

  it('finds what was never published by looking into the stream itself', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);

    await request.appendUnheard('a');
    await request.appendUnheard('b');

    await heardUpTo(heard, 2);
    expect(heard.texts()).toEqual(['a', 'b']);
  });

  it('the relay drops what it hears twice', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    await request.append('a', 'b');
    await request.append('c');

    await relay.lab.redis.publish(relay.hub.channelOf(SHARD), `${request.requestId} 2\n"a"\n"b"`);
    await relay.lab.redis.publish(relay.hub.channelOf(SHARD), `${request.requestId} 3\n"c"`);
    await request.append('d');

    await heardUpTo(heard, 4);
    expect(heard.texts().join('')).toBe('abcd');
  });

  it('loses nothing while the subscriber’s connection is killed again and again', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);

    for (let seq = 1; seq <= 400; seq += 1) {
      await request.append(`${seq} `);
      if (seq % 100 === 50) await relay.killSubscriber();
    }
    await request.finish();

    await heardUpTo(heard, 402);
    expect(heard.texts()).toEqual(numbered(1, 400));
  });

  it('calls a paused reader not at all, and after that once with everything it missed', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    await request.append('a');
    await heardUpTo(heard, 1);

    heard.reader.pause();
    for (const text of numbered(2, 300)) await request.append(text);
    // A second reader shows that everything has arrived here.
    const other = relay.read(request.requestId, { existing: true });
    await heardUpTo(other, 300);
    expect(heard.entries).toHaveLength(1);
    heard.reader.resume();

    await heardUpTo(heard, 300);
  });

  it('keeps the order for a reader that is paused and resumed at every entry', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    const writing = (async () => {
      for (const text of numbered(1, 150)) await request.append(text);
    })();

    await waitUntil(() => {
      heard.reader.pause();
      heard.reader.resume();
      return sequenceOf(heard.entries).at(-1) === 150;
    }, 'all of them');
    await writing;

    expect(sequenceOf(heard.entries)).toEqual(upTo(150));
  });

  it('reads a stream that has begun, from its start or from any event on', async () => {
    const request = await relay.start();
    await request.append(...numbered(1, 10));
    await request.append(...numbered(11, 20));

    const whole = relay.read(request.requestId, { existing: true });
    const part = relay.read(request.requestId, { existing: true, fromSeq: 15 });
    await request.append('21 ');

    await heardUpTo(whole, 21);
    await waitUntil(() => part.entries.at(-1)?.lastSeq === 21, 'the rest');
    expect(sequenceOf(part.entries)).toEqual(upTo(21).slice(14));
  });

  it('calls nobody back after close, and forgets the request', async () => {
    const before = relay.hub.size();
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    const other = relay.read(request.requestId);
    await request.append('a');
    await heardUpTo(other, 1);
    heard.reader.close();
    heard.reader.close();

    await request.append('b');
    await heardUpTo(other, 2);
    other.reader.close();

    expect(heard.texts()).toEqual(['a']);
    expect(relay.hub.size()).toBe(before);
  });

  it('keeps the streams of many requests apart', async () => {
    const requests = await Promise.all(upTo(20).map(() => relay.start()));
    const heard = requests.map(({ requestId }) => relay.read(requestId));

    for (let round = 1; round <= 10; round += 1) {
      await Promise.all(requests.map((request, index) => request.append(`${index}:${round} `)));
    }

    for (const [index, each] of heard.entries()) {
      await heardUpTo(each, 10);
      expect(each.texts()).toEqual(upTo(10).map((round) => `${index}:${round} `));
    }
  });
});

describe('the relay, without its regular look into the streams,', () => {
  const relay = useStarted('relay', () => openRelayLab({ polls: false }));

  it('fills a gap as soon as it hears of what lies behind it', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    await request.append('a');
    await request.appendUnheard('b', 'c');
    await request.appendUnheard('d');

    await request.append('e');

    // Nothing else can bring it: the gap itself is the sign.
    await heardUpTo(heard, 5);
    expect(heard.texts().join('')).toBe('abcde');
  });

  it('hears each of several requests whose text comes in one message', async () => {
    const requests = await Promise.all([relay.start(), relay.start(), relay.start()]);
    const heard = requests.map(({ requestId }) => relay.read(requestId));

    for (const text of ['a', 'b\n\x1e', 'c']) await Promise.all(requests.map((request) => request.append(text)));

    await Promise.all(heard.map((each) => heardUpTo(each, 3)));
    expect(heard.map((each) => each.texts().join(''))).toEqual(Array.from({ length: 3 }, () => 'ab\n\x1ec'));
  });
});

it('says within 2 s that it cannot listen, where Redis does not answer', async () => {
  const silent = createServer((socket) => socket.resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const client = createRedis(`redis://127.0.0.1:${port}`, 'subscriber');
  client.on('error', () => undefined);
  client.connect().catch(() => undefined);
  const channel = createChunkChannel(client, createKeyspace(), 'ing_1');
  const startedAt = performance.now();
  try {
    await expect(channel.subscribe(0)).rejects.toThrow('Command timed out');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  } finally {
    client.disconnect();
    silent.close();
  }
});
