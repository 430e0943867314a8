import { describe, expect, it } from '@jest/globals';

import { decodeEntry } from '../../../shared/contracts/events.ts';
import { createStreamReader } from '../../../shared/requests/answers.ts';
import { waitFor, waitUntil } from '../../support/chat.ts';
import { openRequestLab, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';
import { useStarted } from '../../support/use-service.ts';

const lab = useStarted('lab', openRequestLab);

async function running(): Promise<LabRequest> {
  const request = await lab.admit();
  await lab.run(request, 1);
  return request;
}

/** What was published of a request: sequence number and text. */
async function heardOf({ requestId }: LabRequest, count: number): Promise<[number, string][]> {
  const own = () => lab.heard.filter((message) => message.startsWith(`${requestId} `));
  await waitUntil(() => own().length >= count, 'the published entries');
  return own().map((message) => {
    const [head = '', ...payload] = message.slice(requestId.length + 1).split('\n');
    return [Number(head), payload.join('\n')];
  });
}

it('stores and publishes the same text under the same numbers', async () => {
  const request = await running();

  expect(await lab.requests.append(request.ref(1), 1, ['Once'])).toBe('ok');
  expect(await lab.requests.append(request.ref(1), 3, [' "upon"\n', ' a\u2028time\ud83d\ude00'])).toBe('ok');

  const stored = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, request.requestId, 1);
  const published = (await heardOf(request, 2)).map(([seq, payload]) => decodeEntry(seq, payload));
  expect(published).toEqual(stored);
  expect(stored.flatMap(({ deltas }) => deltas).map((literal) => String(JSON.parse(literal)))).toEqual([
    'Once',
    ' "upon"\n',
    ' a\u2028time\ud83d\ude00',
  ]);
});

it('notes when the first text came, and keeps that time', async () => {
  const request = await running();
  const firstTokenAt = () => lab.redis.hget(lab.keys.record(request.requestId), 'firstTokenAt');

  expect(await firstTokenAt()).toBeNull();
  await lab.requests.append(request.ref(1), 1, ['a']);
  const noted = await firstTokenAt();
  await lab.requests.append(request.ref(1), 2, ['b']);

  expect(noted).not.toBeNull();
  expect(await firstTokenAt()).toBe(noted);
});

it('reaches every ingress that reads the stream', async () => {
  const request = await running();
  const other = `${request.requestId}:other`;
  const record = lab.keys.record(request.requestId);
  await lab.redis.hset(record, 'channels', `${String(await lab.redis.hget(record, 'channels'))},${other}`);
  const subscriber = await lab.connect();
  const heard: string[] = [];
  subscriber.on('message', (_channel: string, message: string) => heard.push(message));
  await subscriber.subscribe(other);

  await lab.requests.append(request.ref(1), 1, ['a']);

  await waitFor(() => heard[0], 'the message of the other ingress');
  expect(heard[0]).toBe(`${request.requestId} 1\n"a"`);
  expect(await heardOf(request, 1)).toHaveLength(1);
});

/** Running requests that have their first text: what follows waits for that of others. */
async function begun(count: number): Promise<LabRequest[]> {
  const requests = await Promise.all(Array.from({ length: count }, running));
  await Promise.all(requests.map((request) => lab.requests.append(request.ref(1), 1, ['a'])));
  return requests;
}

/** The messages to the ingress that carry text of several requests. */
const common = () => lab.heard.filter((message) => message.includes('\x1e'));

const storedTexts = async ({ requestId }: LabRequest) => {
  const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
  return entries.flatMap(({ deltas }) => deltas).map((literal) => String(JSON.parse(literal)));
};

describe('the text of several requests', () => {
  it('is written in one call and published in one message', async () => {
    const requests = await begun(4);

    // The first one opens the wait; where the machine stands still for a moment, another round brings them together.
    let together: string | undefined;
    for (let seq = 2; together === undefined && seq <= 20; seq += 1) {
      const outcomes = await Promise.all(requests.map((request) => lab.requests.append(request.ref(1), seq, ['b'])));
      expect(outcomes).toEqual(['ok', 'ok', 'ok', 'ok']);
      await waitUntil(() => lab.heard.at(-1)?.includes(` ${seq}\n`) === true, 'the last message');
      const texts = requests.slice(1).map(({ requestId }) => `${requestId} ${seq}\n"b"`);
      together = common().find((message) => texts.every((text) => message.split('\x1e').includes(text)));
    }

    expect(together).toBeDefined();
  });

  it('is written although one of them has lost its request to another delivery', async () => {
    const [lost, ...others] = await begun(3);
    if (lost === undefined) throw new Error('There is no request.');
    await lab.run(lost, 2);

    const outcomes = await Promise.all(
      [lost, ...others].map((request) => lab.requests.append(request.ref(1), 2, ['b'])),
    );

    expect(outcomes).toEqual(['superseded', 'ok', 'ok']);
    expect(await Promise.all([lost, ...others].map(storedTexts))).toEqual([['a'], ['a', 'b'], ['a', 'b']]);
  });

  it('is written although Redis cannot write that of one of them', async () => {
    const [broken, sound] = await begun(2);
    if (broken === undefined || sound === undefined) throw new Error('There is no request.');
    await lab.redis.set(lab.keys.stream(broken.requestId), 'no stream');

    const outcomes = await Promise.allSettled(
      [broken, sound].map((request) => lab.requests.append(request.ref(1), 2, ['b'])),
    );

    expect(outcomes[0]).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining('WRONGTYPE') },
    });
    expect(outcomes[1]).toEqual({ status: 'fulfilled', value: 'ok' });
    expect(await storedTexts(sound)).toEqual(['a', 'b']);
  });

  it('takes what waits along with the first text of a request, which waits for nothing', async () => {
    let together: string | undefined;
    for (let round = 0; together === undefined && round < 20; round += 1) {
      const [earlier] = await begun(1);
      const first = await running();
      if (earlier === undefined) throw new Error('There is no request.');
      await lab.requests.append(earlier.ref(1), 2, ['b']);

      const waiting = lab.requests.append(earlier.ref(1), 3, ['c']);
      await lab.requests.append(first.ref(1), 1, ['a']);
      await waiting;

      const names = [`${earlier.requestId} 3`, `${first.requestId} 1`];
      await waitFor(() => lab.heard.find((message) => message.includes(`${first.requestId} 1`)), 'the first text');
      together = common().find((message) => names.every((name) => message.includes(name)));
    }

    expect(together).toBeDefined();
  });
});

it('sets the life of a stream once', async () => {
  const [request] = await begun(1);
  if (request === undefined) throw new Error('There is no request.');
  const stream = lab.keys.stream(request.requestId);
  await lab.redis.pexpire(stream, 60_000);

  await lab.requests.append(request.ref(1), 2, ['b']);

  expect(await lab.redis.pttl(stream)).toBeLessThanOrEqual(60_000);
});

it('lets the stream live no longer than its request may', async () => {
  const request = await running();
  await lab.requests.append(request.ref(1), 1, ['a']);

  const life = Number(await lab.redis.hget(lab.keys.record(request.requestId), 'ttlMs'));
  const left = await lab.redis.pttl(lab.keys.stream(request.requestId));
  expect(left).toBeGreaterThan(life - 5_000);
  expect(left).toBeLessThanOrEqual(life);
});
