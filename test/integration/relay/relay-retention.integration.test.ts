import { setTimeout as pause } from 'node:timers/promises';

import { describe, expect, it } from '@jest/globals';

import { LOST } from '../../../shared/contracts/events.ts';
import { waitUntil } from '../../support/chat.ts';
import { openRelayLab } from '../../support/relay-lab.ts';
import { FAILED, SHARD } from '../../support/request-lab.ts';
import { useStreams } from '../../support/stream-server.ts';
import { useStarted } from '../../support/use-service.ts';

const SHORT_MS = 300;
/** More than the buffers of a socket hold. */
const ENTRIES = 120;
const ENTRY = 'x'.repeat(100_000);

const serve = useStreams(() => relay);
const relay = useStarted('relay', openRelayLab);

function expectWhole(text: string): void {
  const ids = text.match(/^id: \d+$/gm) ?? [];
  expect(ids).toEqual(Array.from({ length: ENTRIES + 2 }, (_, index) => `id: ${index + 1}`));
  expect(text).toContain('data: [DONE]\n\n');
}

async function start() {
  const request = await relay.start();
  const record = relay.lab.keys.record(request.requestId);
  return {
    ...request,
    /** The answer has come whole, and its time is over for whoever comes then. */
    async endAndForget(): Promise<void> {
      await request.finish('', SHORT_MS);
      await waitUntil(async () => (await relay.lab.redis.exists(record)) === 0, 'the retention');
    },
  };
}

describe('an answer whose time is over', () => {
  it('is read to its end by the client that has asked for it, however slowly', async () => {
    const request = await start();
    const { requestId } = request;
    const { socket, ended } = await serve(requestId, { lazy: true });
    for (let entry = 0; entry < ENTRIES; entry += 1) await request.append(ENTRY);

    await request.endAndForget();
    // Two renewals of its reader, by which it might be given up.
    await pause(11_000);
    socket.resume();

    expectWhole(await ended);
  });

  it('is read to its end by a client that resumes in its last moment', async () => {
    const request = await start();
    const { requestId } = request;
    for (let entry = 0; entry < ENTRIES; entry += 1) await request.append(ENTRY);
    await request.leave();
    await request.finish('', SHORT_MS);
    expect((await request.attach())?.state).toBe('done');
    await pause(2 * SHORT_MS);

    const { ended } = await serve(requestId, { existing: true });

    expectWhole(await ended);
  });

  it('goes in time where nobody reads it', async () => {
    const request = await start();
    await request.append('Hello');
    await request.leave();

    await request.endAndForget();

    const { stream, answer } = relay.lab.keys;
    expect(await relay.lab.redis.exists(stream(request.requestId), answer(request.requestId))).toBe(0);
    expect(await request.attach()).toBeUndefined();
  });
});

describe('a reader of which Redis has lost the channel', () => {
  it('hears the text as it comes once it has said again that it reads', async () => {
    const request = await relay.start();
    const heard = relay.read(request.requestId);
    const record = relay.lab.keys.record(request.requestId);
    await relay.lab.redis.hset(record, 'channels', '');

    const channels = () => relay.lab.redis.hget(record, 'channels');
    await waitUntil(async () => (await channels()) !== '', 'the renewal', 10_000);
    await request.append('a');

    expect(await channels()).toBe(relay.hub.channelOf(SHARD));
    await waitUntil(() => heard.texts().length === 1, 'the text', 500);
    heard.reader.close();
  });
});

describe('a reader that has more of an answer than is left of it', () => {
  it('is told once the request has ended, whoever has ended it', async () => {
    const request = await relay.start();
    const { requestId, ref } = request;
    const heard = relay.read(requestId);
    for (const text of ['a', 'b', 'c', 'd', 'e']) await request.append(text);
    await waitUntil(() => heard.texts().length === 5, 'the text');

    // A Redis that has lost text and worker; the sweep ends what it has left.
    const { redis, keys, requests } = relay.lab;
    const left = await redis.xrange(keys.stream(requestId), '-', '2-0');
    await redis.del(keys.stream(requestId));
    for (const [id, fields] of left) await redis.xadd(keys.stream(requestId), id, ...fields);
    await redis.hset(keys.record(requestId), 'lastSeq', 2);
    await requests.finish(ref, 2, FAILED);

    await waitUntil(() => !(heard.entries.at(-1)?.terminal === undefined), 'the end', 15_000);
    expect(heard.entries.at(-1)?.terminal).toEqual(LOST);
    heard.reader.close();
  });
});
